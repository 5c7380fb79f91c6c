"""What `info["metrics"]` tells of an episode, and its score."""

from __future__ import annotations

import math

from agentgyms.sotopia.episode import Episode, State
from agentgyms.sotopia.parties import RANGES, Rating

_BEST_GOAL = RANGES["goal"][1]


def of_episode(episode: Episode, state: State) -> dict[str, float]:
    """Return the figures of an episode so far; ratings are nan until there are any."""
    learner = episode.encounter.seat
    own, other = rating(state, learner), rating(state, 1 - learner)
    spent = state.spent
    return {
        **{name: float(own.scores[name]) if own else math.nan for name in RANGES},
        "overall": own.overall if own else math.nan,
        "partner_goal": float(other.scores["goal"]) if other else math.nan,
        "rated": float(own is not None),
        "hard": float(episode.encounter.hard),
        "dialogue_turns": float(len(state.dialogue)),
        "partner_turn": float(episode.acting(state) != learner),
        "malformed_turns": float(state.malformed),
        "partner_malformed": float(state.partner_malformed),
        "model_calls": float(spent.calls),
        "model_prompt_tokens": float(spent.prompt),
        "model_response_tokens": float(spent.response),
        "cost": float(spent.cost),
    }


def rating(state: State, seat: int) -> Rating | None:
    """Return how the judge rates a seat; None while it has not, and if it gave no rating."""
    if state.verdict is None or state.verdict.ratings is None:
        return None
    return state.verdict.ratings[seat]


def score(state: State, learner: int) -> float:
    """Return the goal / 10 of the agent's seat: 0 before the end, nan if it is not rated."""
    if state.verdict is None:
        return 0.0
    own = rating(state, learner)
    return math.nan if own is None else own.scores["goal"] / _BEST_GOAL
