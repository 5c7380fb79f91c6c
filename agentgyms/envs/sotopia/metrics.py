"""An episode's `info["metrics"]` and score."""

from __future__ import annotations

import math

from agentgyms.envs.sotopia.partner_judge import RANGES, Rating
from agentgyms.envs.sotopia.simulator import DialogueSimulator, DialogueState

_BEST_GOAL = RANGES["goal"][1]


def episode_metrics(simulator: DialogueSimulator, state: DialogueState) -> dict[str, float]:
    """Return the metrics of an episode so far; ratings are nan before the end."""
    learner = simulator.encounter.seat
    own, other = rating(state, learner), rating(state, 1 - learner)
    return {
        **{name: float(own.scores[name]) if own else math.nan for name in RANGES},
        "overall": own.overall if own else math.nan,
        "partner_goal": float(other.scores["goal"]) if other else math.nan,
        "rated": float(own is not None),
        "hard": float(simulator.encounter.hard),
        "dialogue_turns": float(len(state.dialogue)),
        "partner_turn": float(simulator.acting(state) != learner),
        "malformed_turns": float(state.malformed),
        "partner_malformed": float(state.partner_malformed),
        **state.usage.metrics(),
    }


def rating(state: DialogueState, seat: int) -> Rating | None:
    """Return the judge's rating of a seat; None before the end and if there is none."""
    if state.verdict is None or state.verdict.ratings is None:
        return None
    return state.verdict.ratings[seat]


def score(state: DialogueState, learner: int) -> float:
    """Return the goal / 10 of the agent's seat: 0 before the end, nan if it is not rated."""
    if state.verdict is None:
        return 0.0
    own = rating(state, learner)
    return math.nan if own is None else own.scores["goal"] / _BEST_GOAL
