"""What passes between a world and the contract: observations, feedback, outcomes, `info`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple, TypedDict

MAX_OBSERVATION: Final = 16384
MAX_ACTION: Final = 8192
CUT_MARK: Final = "\n[... cut: {left_out} of {total} characters left out ...]"

Observation = str | dict[str, Any]


class Feedback(StrEnum):
    """What the environment made of an action.

    `NO_EFFECT` is an action of a kind that changes the world, legal now, that changed nothing (a
    push against a wall). Asking for information (`look`) is `OK`.
    """

    OK = "ok"
    NO_EFFECT = "no_effect"
    INADMISSIBLE = "inadmissible"
    MALFORMED = "malformed"
    FAILED = "failed"


class TurnInfo(TypedDict, total=False):
    """The `info` of `reset` and `step`; it describes the state the agent acts in next.

    Every key but `oracle` is always present, keeps its type, and is JSON-plain; unknown numbers are
    nan. Nothing here differs between two runs with equal seed and actions.
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
    oracle: str


INFO_TYPES: Final[dict[str, type]] = {
    "task_id": str,
    "split": str,
    "family": str,
    "goal": str,
    "turn": int,
    "state_key": str,
    "observation_key": str,
    "admissible_actions": list,
    "admissible_complete": bool,
    "action_key": str,
    "feedback": str,
    "feedback_text": str,
    "progress": float,
    "score": float,
    "success": bool,
    "metrics": dict,
}
"""Keys that every `info` has, with their one type."""


class Outcome(NamedTuple):
    """What a world answers to `begin` and `act`.

    Attributes:
        observation: What the agent sees.
        state_key: Key of the true state (`agentgyms.keys.state_key`), never of the text alone.
        reward: The benchmark's own reward of this turn.
        terminated: The task ended.
        truncated: The engine was lost, or a limit of the world's own was reached; the limit of
            turns is `TextEnv`'s business.
        admissible: Actions legal now.
        admissible_complete: No other action is legal.
        action_key: Canonical form of the action taken; `keys.INVALID_ACTION` if it matched none.
        feedback: What became of the action.
        feedback_text: Why, in one line.
        progress: Share of the subgoals reached, in [0, 1], or nan.
        score: The benchmark's score so far, in [0, 1]; nan at the end of an episode that cannot be
            scored, which is then lost and not failed.
        success: Solved, by the benchmark's rule.
        metrics: Figures of this environment.
        goal: The goal in words where it changes with the turn; "" is that of the episode.
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


def cut_action(action: str) -> str:
    """Return the action, or the beginning of one that is so long that it is malformed anyhow.

    What is kept is too long for the action space, so that an environment still sees the mistake.
    """
    return str(action)[: MAX_ACTION + 1]


def cut(observation: Observation) -> Observation:
    """Return the observation with its texts cut to `MAX_OBSERVATION`, a visible mark included."""
    if isinstance(observation, str):
        return cut_text(observation)
    return {
        name: cut_text(part) if isinstance(part, str) else part
        for name, part in observation.items()
    }


def cut_text(text: str, limit: int = MAX_OBSERVATION) -> str:
    """Return `text`, or its beginning and a mark that tells how much is missing."""
    if len(text) <= limit:
        return text
    longest_mark = CUT_MARK.format(left_out=len(text), total=len(text))
    kept = limit - len(longest_mark)
    return text[:kept] + CUT_MARK.format(left_out=len(text) - kept, total=len(text))
