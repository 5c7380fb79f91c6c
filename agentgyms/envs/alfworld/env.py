"""The ALFWorld environment."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from agentgyms.core import keys
from agentgyms.core.env import Feedback, Outcome, TextEnv
from agentgyms.core.errors import BadOption
from agentgyms.core.outcome import MAX_ACTION
from agentgyms.core.tasks import Task, TaskSet
from agentgyms.core.tools import Tool, Tools
from agentgyms.envs.alfworld import text
from agentgyms.envs.alfworld.engine import INFORMATION, VERBS, State
from agentgyms.envs.alfworld.expert import expert_actions, remaining
from agentgyms.envs.alfworld.official.engine import Answer, OfficialEngine
from agentgyms.envs.alfworld.problem import FAMILIES
from agentgyms.envs.alfworld.sources import Source, list_tasks, load_game, open_source
from agentgyms.envs.alfworld.validity import check_state

_CACHED_STATES: Final = 64  # groups that are reset at a time; a state takes a few kB
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


_OBJECT: Final = "Name and number of an object, such as mug 1."
_RECEPTACLE: Final = "Name and number of a place, such as shelf 1."


def _with(verb: str, description: str, place: str) -> Tool:
    """Return the tool of a verb that treats a held object at a place."""
    arguments = {"object": "The object that you carry, such as mug 1.", "receptacle": place}
    return Tool(verb, description, f"{verb} {{object}} with {{receptacle}}", arguments)


TOOLS: Final = Tools(
    Tool("go_to", "Walk to a place.", "go to {receptacle}", {"receptacle": _RECEPTACLE}),
    Tool("open", "Open a closed place.", "open {receptacle}", {"receptacle": _RECEPTACLE}),
    Tool("close", "Close an open place.", "close {receptacle}", {"receptacle": _RECEPTACLE}),
    Tool(
        "take",
        "Take an object from the place where you are; you carry one at a time.",
        "take {object} from {receptacle}",
        {"object": _OBJECT, "receptacle": _RECEPTACLE},
    ),
    Tool(
        "move",
        "Put the object that you carry into or onto the place where you are.",
        "move {object} to {receptacle}",
        {"object": _OBJECT, "receptacle": _RECEPTACLE},
    ),
    Tool("use", "Switch something on, such as a lamp.", "use {object}", {"object": _OBJECT}),
    _with("clean", "Wash the object that you carry.", "A sink, such as sinkbasin 1."),
    _with("heat", "Heat the object that you carry.", "An oven, such as microwave 1."),
    _with("cool", "Cool the object that you carry.", "A fridge, such as fridge 1."),
    Tool(
        "slice",
        "Slice an object with a knife that you carry.",
        "slice {object} with {knife}",
        {"object": _OBJECT, "knife": "The knife, such as knife 1."},
    ),
    Tool(
        "examine",
        "Look closely at an object or a place.",
        "examine {thing}",
        {"thing": "Name and number, such as mug 1."},
    ),
    Tool("look", "Look around.", "look"),
    Tool("inventory", "See what you carry.", "inventory"),
    Tool("help", "List the commands.", "help"),
)


class ALFWorldEnv(TextEnv):
    """Household tasks in text: find things, wash, heat or cool them, and put them in their place.

    The rules and the wording are ALFWorld's (Shridhar et al. 2021, arXiv:2010.03768) as its
    release 0.4 plays them, byte for byte, whichever `backend` runs.

    | argument | default | meaning |
    |---|---|---|
    | `split` | `"train"` | see below |
    | `source` | `"generated"` | `"generated"`: this package's tasks; `"official"`: ALFWorld's |
    | `data_path` | `None` | folder of official games; None takes the imported data set |
    | `backend` | `"native"` | `"native"`: this package's engine; `"textworld"`: the official one |
    | `rooms` | `"small"` | generated only: `"small"` has 5-7 receptacles, `"large"` 16-20 |
    | `families` | `None` | a list of families to restrict the tasks to, in any order |
    | `max_turns` | 50 | turns until the episode is truncated |
    | `oracle` | `False` | put the experts' next actions and the way left into `info["oracle"]` |

    Reward is 1 on the turn that reaches the goal and 0 on every other; that turn terminates the
    episode. `info["atoms"]` are the goal's literals (`clean`, `in place`), for the choice of
    objects that is nearest to it, and `info["progress"]` is the share that holds. Families: `pick`,
    `look`, `clean`, `heat`, `cool`, `pick2`.

    | split | official | generated, for each size of room |
    |---|---|---|
    | `train` | 3553 | 3600 |
    | `valid_seen` | 140 | 240, in rooms as in train, filled anew |
    | `valid_unseen` | 134 | 240, in rooms that train never has |
    | `sample` | 12 of train | 12 |

    Experts: `best` knows where everything is; `explore` goes round the room and looks.
    `backend="textworld"` needs the extra `alfworld`, here or in the environment of the interpreter
    that `AGENTGYMS_ALFWORLD_PYTHON` names.
    """

    default_max_turns = 50
    splits = ("train", "valid_seen", "valid_unseen", "sample")
    private_arguments = frozenset({"data_path"})
    tools = TOOLS

    def __init__(
        self,
        *,
        source: str = "generated",
        data_path: str | os.PathLike[str] | None = None,
        backend: str = "native",
        rooms: str = "small",
        families: Sequence[str] | None = None,
        **common: Any,
    ) -> None:
        """Check the arguments; raise `BadOption`, `DataMissing` or `DependencyNotInstalled`."""
        super().__init__(**common)
        if backend not in ("native", "textworld"):
            raise BadOption(f"backend {backend!r} is unknown: expected 'native' or 'textworld'")
        if data_path is not None:
            data_path = self._arguments["data_path"] = os.fspath(data_path)
        self._families = _check_families(families)
        if families is not None:
            self._arguments["families"] = sorted(self._families)
        self._source = open_source(source, data_path, rooms)
        self.data_version = self._source.version(self.split)
        self._official = OfficialEngine() if backend == "textworld" else None
        self.blocking = self._official is not None

    @classmethod
    def data_source_of(cls, arguments: Mapping[str, Any]) -> str:
        """Return `"generated"` or `"official"`, the argument `source`."""
        return str(arguments.get("source", "generated"))

    def load_tasks(self) -> TaskSet:
        """Return the tasks of the split, of the chosen families."""
        return list_tasks(self._source, self.split, self._families)

    def begin(self, task: Task, rng: np.random.Generator) -> Outcome:
        """Start a game; episodes are deterministic."""
        self._state = first_state(self._source, self.split, task.task_id).copy()
        if self._official is not None:
            fields = self._source.fields(self.split, task.task_id)
            return self._confirmed(self._official.load(fields), self._outcome(""))
        return self._outcome(text.introduction(self._state))

    def goal(self, task: Task) -> str:
        """Return the task sentence."""
        return self._state.game.sentence

    def act(self, action: str) -> Outcome:
        """Execute the action if admissible; raise `WorkerLost` if the official engine fails."""
        outcome = self._play(action)
        if self._official is not None:
            return self._confirmed(self._official.step(action), outcome)
        return outcome

    def _play(self, action: str) -> Outcome:
        state = self._state
        command = action.strip()
        move = state.find(command)
        if move is None:
            feedback, reason = _refusal(action, command)
            return self._outcome(text.NOTHING_HAPPENS, keys.INVALID_ACTION, feedback, reason)
        before = state.bits
        observation = state.perform(move)
        if state.bits == before and move[0] not in INFORMATION:
            return self._outcome(
                observation, command, Feedback.NO_EFFECT, f"{command!r} changed nothing"
            )
        return self._outcome(observation, command)

    def _confirmed(self, answer: Answer, outcome: Outcome) -> Outcome:
        """Return the official engine's outcome, with the native engine's keys."""
        return outcome._replace(
            observation=answer.observation,
            admissible=answer.admissible,
            reward=float(answer.won),
            score=float(answer.won),
            success=answer.won,
            terminated=answer.won,
        )

    def save(self) -> Any:
        """Return the state's bits in hexadecimal; None for the official engine."""
        return f"{self._state.bits:x}" if self._official is None else None

    def load(self, task: Task, state: Any) -> None:
        """Restore what `save` returned."""
        first, bits = first_state(self._source, self.split, task.task_id), int(state, 16)
        if bits == first.bits:  # which a group's members all take up, at every reset
            self._state = first.copy()
            return
        check_state(first.game, bits)
        self._state = State(first.game, bits)

    def close(self) -> None:
        """Terminate the official engine's process, if there is one."""
        if self._official is not None:
            self._official.close()

    def expert_actions(self) -> dict[str, str]:
        """Return the next command of `best` and of `explore`."""
        return expert_actions(self._state)

    def solution(self) -> dict[str, Any]:
        """Return the experts' commands, and the number of commands that `best` still gives."""
        return {**self.expert_actions(), "optimal_remaining": remaining(self._state)}

    def _outcome(
        self,
        observation: str,
        action_key: str = "",
        feedback: Feedback = Feedback.OK,
        reason: str = "",
    ) -> Outcome:
        state = self._state
        reached, total, won = state.reached, state.game.aim.total, state.won
        return Outcome(
            observation=observation,
            state_key=state.key,
            reward=float(won),
            terminated=won,
            admissible=state.admissible,
            admissible_complete=True,
            action_key=action_key,
            feedback=feedback,
            feedback_text=reason,
            progress=reached / total,
            score=float(won),
            success=won,
            metrics={"subgoals_reached": float(reached), "subgoals_total": float(total)},
            atoms=dict(zip(state.game.aim.names, state.holds, strict=True)),
        )


@lru_cache(maxsize=_CACHED_STATES)
def first_state(source: Source, split: str, task_id: str) -> State:
    """Return the initial state of a game, to be copied; cached for the members of a group."""
    return State(load_game(source, split, task_id))


def _check_families(families: Sequence[str] | None) -> frozenset[str]:
    if families is None:
        return frozenset(FAMILIES)
    listed = isinstance(families, Sequence) and not isinstance(families, str)
    if not listed or not families or any(family not in FAMILIES for family in families):
        raise BadOption(
            f"families must be a list of some of {', '.join(FAMILIES)}, got {families!r}"
        )
    return frozenset(families)


def _refusal(action: str, command: str) -> tuple[Feedback, str]:
    verb = command.partition(" ")[0]
    if not command:
        return Feedback.MALFORMED, "the command is blank"
    if len(action) > MAX_ACTION:
        return Feedback.MALFORMED, f"the command is longer than {MAX_ACTION} characters"
    if _CONTROL.search(command):
        return Feedback.MALFORMED, "the command holds a control character"
    if verb not in VERBS:
        return Feedback.MALFORMED, f"no command begins with {verb!r:.40}"
    return Feedback.INADMISSIBLE, f"{command!r:.100} is not possible now"
