"""The `Outcome` of a world, the `info` that users get, and functions of observations."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple, TypedDict, get_origin, get_type_hints

import numpy as np

from agentgyms.core import keys
from agentgyms.core.tasks import Task

_KEY_SHOWN: Final = 8
MAX_OBSERVATION: Final = 16384
MAX_ACTION: Final = 8192
CUT_MARK: Final = "\n[... cut: {left_out} of {total} characters left out ...]"
PLACEHOLDER: Final = re.compile(r"<\w[^<>]*>")
"""A placeholder in an admissible action, such as `<query>` of `search[<query>]`."""

Observation = str | dict[str, Any]


class Feedback(StrEnum):
    """The effect of an action.

    `OK`: it did what it says; actions that ask for information (`look`) are `OK` too.
    `NO_EFFECT`: it is legal and of a kind that changes the world, but it changed nothing (a push
    against a wall). `INADMISSIBLE`: it is not legal in this state. `MALFORMED`: it is no action of
    this environment. `FAILED`: it was executed and raised an error.
    """

    OK = "ok"
    NO_EFFECT = "no_effect"
    INADMISSIBLE = "inadmissible"
    MALFORMED = "malformed"
    FAILED = "failed"


class TurnInfo(TypedDict, total=False):
    """The `info` of `reset` and `step`; it describes the state the agent acts in next.

    Every key but `oracle` is always present, keeps its type, and is JSON-plain; unknown `progress`
    and `score` are nan, unknown figures of `metrics` are absent. Two runs with equal seed and
    actions have equal infos.

    Attributes:
        task_id: Which task is played.
        split: The split that the task is of.
        family: The kind of task, such as `heat`, for tables of results.
        goal: The goal in words.
        turn: Turns taken so far.
        state_key: Digest of the true state; equal exactly when the state is equal.
        observation_key: Digest of what the agent sees.
        admissible_actions: Actions that are legal now; empty if they cannot be listed.
        admissible_complete: No other action is legal; false for open language.
        action_key: Canonical form of the action just taken; empty after a reset.
        feedback: The effect of the action, a value of `Feedback`; `ok` after a reset.
        feedback_text: The reason in one line.
        progress: Share of the task's subgoals reached; nan (null in JSON) if unknown.
        score: The benchmark's score of the episode so far; nan (null in JSON) if unrated.
        success: Solved, by the benchmark's own rule.
        metrics: Figures of this environment that are known by now.
        atoms: Parts of the goal by name: whether each holds now, or the share of it that does;
            empty if unknown. For those who may see rewards; never for agents.
        oracle: Solutions as JSON, only with the argument `oracle=True`.
    """

    task_id: str
    split: str
    family: str
    goal: str
    turn: int
    state_key: str
    observation_key: str
    admissible_actions: list[str]
    admissible_complete: bool
    action_key: str
    feedback: str
    feedback_text: str
    progress: float
    score: float
    success: bool
    metrics: dict[str, float]
    atoms: dict[str, bool | float]
    oracle: str


INFO_TYPES: Final[dict[str, type]] = {
    name: get_origin(hint) or hint
    for name, hint in get_type_hints(TurnInfo).items()
    if name != "oracle"
}
"""The keys that every `info` has, and the type of each."""


class Outcome(NamedTuple):
    """The result of the methods `begin` and `act` of a world.

    Attributes:
        observation: The text, the image, or both, that the agent sees.
        state_key: Key of the true state (`agentgyms.core.keys.state_key`), not of the text alone.
        reward: The benchmark's own reward of this turn.
        terminated: The task ended.
        truncated: The engine was lost, or a limit of this world, other than turns, was reached.
        admissible: Actions legal now.
        admissible_complete: No other action is legal.
        action_key: Canonical form of the action taken; `keys.INVALID_ACTION` if it matched none.
        feedback: The effect of the action.
        feedback_text: The reason or the error, in one line.
        progress: Share of the subgoals reached, in [0, 1], or nan.
        score: The benchmark's score so far, in [0, 1]; nan at the end of an episode that cannot be
            scored: such an episode is lost, not failed.
        success: Whether the task is solved, by the benchmark's rule.
        metrics: Numbers of this environment, by name; `info` has those that are not nan.
        goal: The goal in words if it changes during the episode; "" means the episode's goal.
        atoms: Parts of the goal, by names that are the same in all turns of an episode and tell no
            solution: whether each holds in this state, or the share of it that does, in [0, 1].
            Empty if unknown. All that are true or false hold once the task is solved.
    """

    observation: Observation
    state_key: str
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    admissible: Sequence[str] = ()
    admissible_complete: bool = False
    action_key: str = ""
    feedback: Feedback = Feedback.OK
    feedback_text: str = ""
    progress: float = math.nan
    score: float = 0.0
    success: bool = False
    metrics: Mapping[str, float] = {}
    goal: str = ""
    atoms: Mapping[str, bool | float] = {}


def make_info(
    outcome: Outcome, observation: Observation, task: Task, *, split: str, goal: str, turn: int
) -> dict[str, Any]:
    """Return the `info` of a turn, without `oracle`; `goal` counts if the outcome has none."""
    return {
        "task_id": task.task_id,
        "split": split,
        "family": task.family,
        "goal": outcome.goal or goal,
        "turn": turn,
        "state_key": outcome.state_key,
        "observation_key": keys.observation_key(observation),
        "admissible_actions": list(outcome.admissible),
        "admissible_complete": outcome.admissible_complete,
        "action_key": outcome.action_key,
        "feedback": outcome.feedback.value,
        "feedback_text": outcome.feedback_text,
        "progress": outcome.progress,
        "score": outcome.score,
        "success": outcome.success,
        "metrics": known(outcome.metrics),
        "atoms": dict(outcome.atoms),
    }


def for_agents(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return an `info` without what agents and their programs must not learn: its atoms."""
    return {**info, "atoms": {}}


def known(metrics: Mapping[str, float]) -> dict[str, float]:
    """Return the figures that are known: neither nan nor infinite."""
    return {name: value for name, value in metrics.items() if math.isfinite(value)}


def cut_action(action: str) -> str:
    """Return the action, cut to `MAX_ACTION` + 1 characters, so that it is seen to be too long."""
    return str(action)[: MAX_ACTION + 1]


def cut(observation: Observation, limit: int) -> Observation:
    """Return the observation with each text cut to `limit` characters by `cut_text`."""
    if isinstance(observation, str):
        return cut_text(observation, limit)
    return {
        name: cut_text(part, limit) if isinstance(part, str) else part
        for name, part in observation.items()
    }


def cut_text(text: str, limit: int = MAX_OBSERVATION) -> str:
    """Return `text`, or if it is longer than `limit`, its beginning and a mark that says so."""
    if len(text) <= limit:
        return text
    longest_mark = CUT_MARK.format(left_out=len(text), total=len(text))
    kept = limit - len(longest_mark)
    return text[:kept] + CUT_MARK.format(left_out=len(text) - kept, total=len(text))


def text_of(observation: Observation) -> str:
    """Return the text of an observation: itself, or its part `text`, or ""."""
    return observation if isinstance(observation, str) else str(observation.get("text", ""))


def user_text(
    observation: Observation, info: dict[str, Any], shown: Callable[[str], str] = str
) -> str:
    """Return goal (first turn), observation and actions as text, each action as `shown`."""
    parts = [f"Your task: {info['goal']}"] if not info["turn"] else []
    parts.append(text_of(observation))
    if info["admissible_actions"]:
        parts.append("Actions that work now:\n" + "\n".join(map(shown, info["admissible_actions"])))
    return "\n\n".join(parts)


def turn_text(
    observation: Observation,
    info: dict[str, Any],
    shown: Callable[[str], str] = str,
    *,
    over: bool = False,
) -> str:
    """Return `user_text` and what came of the turn: feedback that is not `ok`, and the end."""
    words = [user_text(observation, info, shown)]
    if info["feedback"] != "ok":
        words.append(f"[{info['feedback']}] {info['feedback_text']}")
    if over:
        words.append("The episode is over: " + ("success" if info["success"] else "no success"))
    return "\n\n".join(words)


def copy_observation(observation: Observation) -> Observation:
    """Return an observation that shares no container and no array with the given one."""
    if isinstance(observation, str):
        return observation
    return {
        name: part.copy() if isinstance(part, np.ndarray) else part
        for name, part in observation.items()
    }


def equal_observations(first: Observation, second: Observation) -> bool:
    """Return whether two observations are equal, every pixel included."""
    if isinstance(first, str) or isinstance(second, str):
        return first == second
    return keys.observation_key(first) == keys.observation_key(second)


def shown(value: Any) -> str:
    """Return `repr(value)`, with arrays as their type, shape and the beginning of their key."""
    if isinstance(value, np.ndarray):
        key = keys.observation_key({"": value})[:_KEY_SHOWN]
        return f"<{value.dtype} {list(value.shape)}, key {key}>"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k!r}: {shown(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(shown, value)) + "]"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(shown, value)) + ",)"
    return repr(value)
