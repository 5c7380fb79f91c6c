"""The state that all objects of one game share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agentgyms.envs.scienceworld.own.random import JavaRandom

PassTime = Callable[[Any], tuple[Any, ...]]
"""A function that lets a turn pass for an object, and returns the objects in it that follow."""


def no_time(obj: Any) -> tuple[Any, ...]:
    """Refuse to let time pass."""
    raise NotImplementedError(f"time cannot pass for {obj!r}: its world was made without pass_time")


class World:
    """Holds the generator, the counter of objects and whatever else a game has only one of.

    Attributes:
        random: The generator that every part of the game draws from.
        count: The number of the newest object.
        pass_time: The function that lets time pass for an object; processes look at objects, so
            that the objects themselves do not know it.
        turn: The number of the turn whose time passes, which objects note when it has for them.
        simplifier: The simplifications of the game, which their own module sets.
        search_patterns: The ways through all places that solutions have drawn, of each start.
    """

    def __init__(self, seed: int = 0, pass_time: PassTime = no_time) -> None:
        self.pass_time = pass_time
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
