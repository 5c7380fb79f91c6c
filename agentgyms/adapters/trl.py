"""Lets TRL's GRPOTrainer train on any environment: its tools are the environment's own.

    GRPOTrainer(
        model,
        environment_factory=environment_factory("agentgyms/ALFWorld-v0", split="train"),
        train_dataset=seeds(512),
        ...
    )

A row's `seed`, and `task_id` if it has one, decide the episode, so its generations start in one
state. A wrong call is an error that the model reads, and no turn. The reward is the return; where
the environment failed or nobody rated there is none, and TRL leaves it out of the group.
"""

from __future__ import annotations

import inspect
import json
import math
import random
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

import PIL.Image

from agentgyms.adapters.messages import TOOL_INSTRUCTIONS, tools_of, turn_text
from agentgyms.core import imports
from agentgyms.core.errors import BadOption
from agentgyms.core.experts import Expert
from agentgyms.core.images import is_image
from agentgyms.core.outcome import Observation
from agentgyms.core.tools import ANY_ACTION, Argument, BadCall, Tool, ToolCall, Tools
from agentgyms.recording.recorder import make_header
from agentgyms.recording.recording_format import RecordedTurn, Recording
from agentgyms.registration import make_text_env, short_name

if TYPE_CHECKING:
    from datasets import Dataset

INSTRUCTIONS: Final = f"{TOOL_INSTRUCTIONS} When the episode is over, answer without a call."
"""The system prompt of `seeds`."""

_TYPES: Final[dict[str, Any]] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list,
    "object": dict,
}


class ToolEnvironment:
    """An environment with the methods that TRL calls; `environment_factory` adds its tools.

    `recording` is the episode so far; `agent["answer"]` of a turn is the value of `answer_number`
    when it was taken: the number of the model's answer, from 0, for a trainer that counts them.
    `error` is the environment's failure in this episode, or "".
    """

    recording = Recording({})
    over = False
    error = ""
    answer_number = 0
    _make: ClassVar[Callable[[], Any]]
    _tools: ClassVar[Tools]

    def __init__(self) -> None:
        self._env = type(self)._make()
        # TRL closes nothing
        weakref.finalize(self, self._env.close)

    def reset(self, *, seed: int | None = None, task_id: str | None = None, **_: Any) -> Any:
        """Start a row's episode; return what TRL appends: a text, or blocks of pictures and a text.

        Raises `BadOption` without a seed: the row's generations would start apart.
        """
        if seed is None:
            raise BadOption("a row of the dataset has no `seed`: agentgyms.adapters.trl.seeds has")
        options = {} if task_id is None else {"task_id": task_id}
        observation, info = self._env.reset(seed=seed, options=options)
        self.over, self.error, self.answer_number = False, "", 0
        world = self._env.unwrapped
        header = make_header(world.spec.id, world, seed, options, actor="trl")
        first = RecordedTurn(0, "", observation, 0.0, False, False, info)
        self.recording = Recording(header, [first])
        return self._content(observation, info)

    def get_reward(self) -> float | None:
        """Return the episode's return; None if the environment failed or it was not rated."""
        total = math.fsum(turn.reward for turn in self.recording.turns)
        # TRL leaves None out of the group; 0 would be a verdict on the agent
        return None if self.error or math.isnan(total) else total

    def _call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Take a turn; TRL shows the model the error that is raised here."""
        if self.over or self.error:
            raise BadCall(self.error or "the episode is over: answer without a call")
        action = self._tools.action(ToolCall(name, arguments))
        try:
            observation, reward, terminated, truncated, info = self._env.step(action)
        except Exception as e:
            self.error = f"{type(e).__name__}: {e}"
            raise
        self.over = terminated or truncated
        ends = (float(reward), bool(terminated), bool(truncated))
        agent = {"answer": self.answer_number}
        turn = RecordedTurn(info["turn"], action, observation, *ends, info, agent)
        self.recording.turns.append(turn)
        return self._content(observation, info)

    def _content(self, observation: Observation, info: dict[str, Any]) -> Any:
        text = turn_text(observation, info, self._tools.shown, over=self.over)
        parts = [] if isinstance(observation, str) else observation.values()
        pictures = [PIL.Image.fromarray(part) for part in parts if is_image(part)]
        if not pictures:
            return text
        blocks = [{"type": "image", "image": picture} for picture in pictures]
        return [*blocks, {"type": "text", "text": text}]


def environment_factory(
    env_id: str, *, native: bool = True, **kwargs: Any
) -> type[ToolEnvironment]:
    """Return a class for TRL's `environment_factory`, with a method for each tool.

    Args:
        env_id: A registered id.
        native: Whether the tools are the environment's own, or one, `act`, that takes any text.
        **kwargs: Arguments of `gymnasium.make`; with `url` the environment is on a server.

    Raises:
        BadOption: The environment takes no such argument, or has a tool whose name TRL or this
            class keeps for itself.
    """
    own_tools = tools_of(env_id, kwargs)
    tools = own_tools if native else ANY_ACTION
    for tool in tools:
        if tool.name.startswith("_") or hasattr(ToolEnvironment, tool.name):
            raise BadOption(
                f"{env_id} has a tool of the reserved name {tool.name}: give native=False"
            )
    methods = {tool.name: _method(tool) for tool in tools}
    own = {"_make": staticmethod(lambda: make_text_env(env_id, **kwargs)), "_tools": tools}
    return type(short_name(env_id), (ToolEnvironment,), {**own, **methods})


def seeds(number: int, *, first: int = 0, instructions: str = INSTRUCTIONS) -> Dataset:
    """Return a dataset of a row for each seed, with a prompt that `reset` completes.

    `first` is the first row's seed; the others follow it. `instructions` is the system prompt.
    Raises `ModuleNotFoundError` if the package datasets is not installed.
    """
    texts = {"system": instructions, "user": ""}
    prompt = [{"role": role, "content": content} for role, content in texts.items()]
    rows = range(first, first + number)
    return _datasets().from_list([{"prompt": prompt, "seed": seed} for seed in rows])


def demonstrations(players: type[ToolEnvironment], rows: Dataset, *, noise: float = 0.0) -> Dataset:
    """Return the expert's episodes as chats with calls, from which TRL's SFTTrainer learns.

    Args:
        players: The class that `environment_factory` returned.
        rows: The rows whose episodes the expert plays, such as those of `seeds`.
        noise: The probability, in [0, 1), of a call drawn from those that work instead.

    Returns:
        A row for each episode: `messages` and, as JSON text, `tools`.

    Raises:
        BadOption: The environment has no expert, is on a server, or shows pictures; or `noise` is
            out of range, or asked of an environment that does not list what works.
        ModuleNotFoundError: The package datasets is not installed.
    """
    if not 0 <= noise < 1:
        raise BadOption(f"noise must be a probability in [0, 1), got {noise}")
    player = players()
    tools = json.dumps(_described(player._tools))
    chats = [{"messages": _played(player, row, noise), "tools": tools} for row in rows]
    # as JSON, since the columns of others have the same keys in every row, and calls have not
    return _datasets().from_list(chats, on_mixed_types="use_json")


def _datasets() -> type[Dataset]:
    try:
        from datasets import Dataset
    except ModuleNotFoundError as e:
        raise ModuleNotFoundError(imports.missing("datasets", "trl"), name=e.name) from e
    return cast("type[Dataset]", Dataset)


def _described(tools: Tools) -> list[dict[str, Any]]:
    """Return the tools as TRL shows them: by name, with the keys in transformers' order."""
    schemas = [tool.schema for tool in sorted(tools, key=lambda tool: tool.name)]
    for schema in schemas:
        parameters = schema["function"]["parameters"]
        properties, required = parameters["properties"], parameters["required"]
        # a signature has the optional ones last
        parameters["properties"] = {
            name: _property(properties[name])
            for name in sorted(properties, key=lambda name: name not in required)
        }
        if not parameters["required"]:
            del parameters["required"]
    return schemas


def _property(schema: dict[str, Any]) -> dict[str, Any]:
    order = [key for key in ("type", "items", "enum", "description") if key in schema]
    shown: dict[str, Any] = {key: schema[key] for key in order}
    if "items" in shown:  # an annotation has the type alone
        shown["items"] = {"type": shown["items"]["type"]}
    return shown


def _played(player: ToolEnvironment, row: dict[str, Any], noise: float) -> list[dict[str, Any]]:
    """Return the chat of the expert's episode; the answer behind its end has no call."""
    *chat, asked = row["prompt"]
    seen = player.reset(**{name: value for name, value in row.items() if name != "prompt"})
    if not isinstance(seen, str):
        raise BadOption("demonstrations are for texts, and this environment shows pictures")
    chat.append({**asked, "content": asked["content"] + seen})
    expert, chance = Expert(player._env), random.Random(row["seed"])
    while not player.over:
        works = player.recording.turns[-1].info["admissible_actions"]
        if noise and not works:
            raise BadOption("noise needs actions that the environment lists: it lists none here")
        action = chance.choice(works) if chance.random() < noise else expert()
        call = player._tools.call(action)
        if call is None:
            raise BadOption(f"the expert's action {action!r:.80} is no call of a tool")
        function = {"name": call.name, "arguments": dict(call.arguments)}
        calls = [{"type": "function", "function": function}]
        chat.append({"role": "assistant", "content": "", "tool_calls": calls})
        seen = player._call(call.name, dict(call.arguments))
        chat.append({"role": "tool", "name": call.name, "content": seen})
    return [*chat, {"role": "assistant", "content": "The episode is over."}]


def _method(tool: Tool) -> Callable[..., Any]:
    """Return a method whose signature and docstring say what the tool's schema says."""

    def method(self: ToolEnvironment, **arguments: Any) -> Any:
        return self._call(tool.name, arguments)

    ordered = sorted(tool.parameters.items(), key=lambda item: not item[1].required)
    types = {name: _annotation(one) for name, one in ordered}
    defaults = {name: inspect.Parameter.empty if one.required else None for name, one in ordered}
    lines = [" ".join(tool.description.split()), "", "Args:"]
    for name, one in tool.parameters.items():
        choices = f" (choices: {_listed(one.choices)})" if one.choices else ""
        lines.append(f"    {name}: {' '.join(one.description.split())}{choices}")
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [
        inspect.Parameter("self", kind),
        *(
            inspect.Parameter(name, kind, default=defaults[name], annotation=types[name])
            for name in types
        ),
    ]
    method.__name__ = method.__qualname__ = tool.name
    method.__doc__ = "\n".join(lines if types else lines[:1])
    method.__annotations__ = types
    method.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return method


def _annotation(one: Argument) -> Any:
    kind = _TYPES[one.type]
    return kind[_TYPES[one.items.type]] if one.items else kind


def _listed(choices: tuple[str, ...]) -> str:
    return json.dumps(list(choices), ensure_ascii=False)
