"""Recorded traces of the real engine as commands and digests, small enough for the repository."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any, NamedTuple


class Told(NamedTuple):
    """All that an engine tells of a state; `seed` is its generator's state."""

    observation: str
    score: float
    completed: bool
    moves: int
    goals: str
    task: str
    admissible: Sequence[str]
    seed: str

    def digest(self) -> str:
        """Return twelve digits that stand for it."""
        return hashlib.blake2b(json.dumps(self).encode(), digest_size=6).hexdigest()


def packed(trace: Any) -> dict[str, Any]:
    """Return a trace of parity_traces.py with digests in place of answers."""
    digests = [
        Told(a.observation, a.score, a.completed, a.moves, a.goals, a.task, a.admissible, a.key)
        for a in trace.answers
    ]
    first, *later = (one.digest() for one in digests)
    return {
        "game": trace.game,
        "start": first,
        "turns": list(zip(trace.commands, later, strict=True)),
    }


def of_game(game: Any, observation: str) -> str:
    """Return the digest of a game of our engine."""
    return Told(
        observation,
        game.score,
        game.completed,
        game.moves,
        game.goal_progress(),
        game.task_description(),
        game.valid_actions(),
        str(game.world.random.state),
    ).digest()
