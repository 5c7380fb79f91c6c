"""Evaluates models on any environment with inspect_ai: a task, its solver and its scorer.

    inspect eval agentgyms/episodes -T env_id=ALFWorld -T split=valid_seen --model openai/gpt-5

Each task of the split is a sample, and each epoch plays it with another seed. The environment's own
tools are the tools of the model. A failure on the way is an error of the sample and no score.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Final

from agentgyms.adapters.episodes import ChatEpisode
from agentgyms.adapters.messages import INSTRUCTIONS, TOOL_INSTRUCTIONS, tools_of
from agentgyms.core import imports
from agentgyms.core.tools import BadCall, ToolCall, Tools
from agentgyms.registration import full_id, make_text_env

try:
    from anyio import to_thread
    from inspect_ai import Task, task
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.log import transcript
    from inspect_ai.model import (
        ChatMessage,
        ChatMessageAssistant,
        ChatMessageSystem,
        ChatMessageUser,
        ContentImage,
        ContentText,
        execute_tools,
    )
    from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
    from inspect_ai.solver import Generate, Solver, TaskState, solver
    from inspect_ai.tool import ToolDef, ToolError, ToolParams
except ModuleNotFoundError as e:
    raise ModuleNotFoundError(imports.missing("inspect_ai", "inspect"), name=e.name) from e

PLAYED: Final = "agentgyms/episode"
"""Key of a sample's store: the figures of its episode, `state_key` and `feedback_text`."""


@task  # type: ignore[untyped-decorator]
def episodes(
    env_id: str,
    *,
    native: bool = True,
    seed: int = 0,
    instructions: str | None = None,
    **kwargs: Any,
) -> Task:
    """Return the task whose samples are the tasks of an environment's split.

    Args:
        env_id: A registered id, also a short one such as `ALFWorld`.
        native: Whether the model calls the environment's own tools, instead of writing an action.
        seed: Seed of the first epoch; every further epoch has the next one.
        instructions: The system prompt; None takes that of this package.
        **kwargs: Arguments of `gymnasium.make`, such as `split` and `url`.

    Raises:
        AgentGymsError: The environment cannot be made.
    """
    env = make_text_env(env_id, **kwargs)
    world: Any = env.unwrapped
    samples = [
        Sample(input=task_id, id=task_id, metadata={"family": world.tasks.find(task_id).family})
        for task_id in world.tasks
    ]
    about = {"env_id": full_id(env_id), "split": world.split, "data_version": world.data_version}
    env.close()
    return Task(
        dataset=MemoryDataset(samples, name=f"{about['env_id']} {about['split']}"),
        solver=play(env_id, native=native, seed=seed, instructions=instructions, **kwargs),
        scorer=outcome(),
        metadata=about,
    )


@solver  # type: ignore[untyped-decorator]
def play(
    env_id: str,
    *,
    native: bool = True,
    seed: int = 0,
    instructions: str | None = None,
    **kwargs: Any,
) -> Solver:
    """Return the solver that plays the task whose id is the sample's id; see `episodes`.

    An answer without a call that the environment takes is a turn without an action, so an episode
    ends at the environment's limit of turns whatever the model says.
    """
    tools = tools_of(env_id, kwargs) if native else None
    said = instructions or (INSTRUCTIONS if tools is None else TOOL_INSTRUCTIONS)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        env = await to_thread.run_sync(functools.partial(make_text_env, env_id, **kwargs))
        player = _Player(ChatEpisode(env, str if tools is None else tools.shown), tools, state)
        try:
            await player.begin(seed + state.epoch - 1)
            state.messages = [ChatMessageSystem(content=said), player.seen]
            state.tools = player.tools
            while not (player.episode.over or state.completed):
                state = await generate(state, tool_calls="none")
                if state.output.stop_reason == "model_length":
                    break
                state.messages.extend(await player.answer(state.output.message))
        finally:
            await to_thread.run_sync(player.episode.close)
        return state

    return solve


@scorer(  # type: ignore[untyped-decorator]
    metrics={
        "success": [mean(), stderr()],
        "return": [mean(), stderr()],
        "score": [mean(), stderr()],
        "turns": [mean()],
    }
)
def outcome() -> Scorer:
    """Return the scorer of `play`: success, return, turns and, where there is one, the score."""

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001
        told = dict(state.store.get(PLAYED))
        value = {name: told.pop(name, math.nan) for name in ("success", "return", "score", "turns")}
        return Score(value=value, explanation=told.pop("feedback_text"), metadata=told)

    return score


class _Player:
    def __init__(self, episode: ChatEpisode, tools: Tools | None, state: TaskState) -> None:
        self.episode, self._tools, self._state = episode, tools, state
        self.tools = [] if tools is None else [self._tool(schema) for schema in tools.schemas]

    async def begin(self, seed: int) -> None:
        await to_thread.run_sync(self.episode.reset, seed, self._state.sample_id)
        self._keep()

    @property
    def seen(self) -> ChatMessageUser:
        return ChatMessageUser(content=self._content())

    async def answer(self, message: ChatMessageAssistant) -> list[ChatMessage]:
        """Take the turns of an answer and return what the model reads then."""
        if self._tools is None:
            await self._turn(self.episode.say, message.text)
            return [self.seen]
        before = self.episode.info["turn"]
        told: list[ChatMessage] = (await execute_tools([message], self.tools)).messages
        if self.episode.info["turn"] > before:
            return told
        await self._turn(self.episode.act, "")
        return [*told, self.seen]

    def _tool(self, schema: dict[str, Any]) -> ToolDef:
        named = schema["function"]

        async def call(**kwargs: Any) -> Any:
            if self.episode.over:
                raise ToolError("the episode is over")
            try:
                action = self._tools.action(ToolCall(named["name"], kwargs))  # type: ignore[union-attr]
            except BadCall as e:
                raise ToolError(str(e)) from e
            await self._turn(self.episode.act, action)
            return self._content()

        parameters = ToolParams.model_validate(named["parameters"])
        return ToolDef(call, named["name"], named["description"], parameters, max_output=0)

    async def _turn(self, take: Callable[[str], None], said: str) -> None:
        await to_thread.run_sync(take, said)
        self._keep()
        info = self.episode.info
        keys = ("turn", "action_key", "feedback", "feedback_text", "success", "state_key")
        told = {"reward": self.episode.reward, **{key: info[key] for key in keys}}
        transcript().info(told, source="agentgyms")

    def _keep(self) -> None:
        keys = ("family", "state_key", "feedback_text")
        told = {key: self.episode.info[key] for key in keys}
        self._state.store.set(PLAYED, {**self.episode.figures, **told})

    def _content(self) -> Any:
        if not self.episode.images:
            return self.episode.text
        pictures = [ContentImage(image=url) for url in self.episode.images]
        return [ContentText(text=self.episode.text), *pictures]
