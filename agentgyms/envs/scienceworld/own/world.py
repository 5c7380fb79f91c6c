"""The state that all objects of one game share."""

from __future__ import annotations

from typing import Any

from agentgyms.envs.scienceworld.own.random import JavaRandom


class World:
    """Holds the generator, the counter of objects and whatever else a game has only one of.

    Attributes:
        random: The generator that every part of the game draws from.
        count: The number of the newest object.
        turn: The number of the turn whose time passes, which objects note when it has for them.
        simplifier: The simplifications of the game, which their own module sets.
        search_patterns: The ways through all places that solutions have drawn, of each start.
    """

    def __init__(self, seed: int = 0) -> None:
        """Start a world without objects."""
        self.random = JavaRandom(seed)
        self.count = 0
        self.turn = 1
        self.simplifier: Any = None
        self.search_patterns: dict[str, list[list[str]]] = {}

    def next_id(self) -> int:
        """Return the number of a new object."""
        self.count += 1
        return self.count

    def reset_ids(self) -> None:
        """Start the counter of objects again."""
        self.count = 0
