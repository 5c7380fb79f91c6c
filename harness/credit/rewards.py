"""The training reward: of an episode's turns, by name."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from harness.types.errors import TableError
from harness.types.hyperparameters import Registry
from harness.types.rollout import Rollout

Reward = Callable[[Rollout], Sequence[float]]
"""`rollout -> a number for each of its turns`, before `method.reward_scale`."""


def _of_object(name: str, found: Any) -> Reward | None:
    return _checked(name, found) if callable(found) else None


_REWARDS: Registry[Reward] = Registry("reward", of_object=_of_object)


def reward(name: str) -> Callable[[Reward], Reward]:
    """Register the decorated function as reward `name`, for `method.reward`."""

    def add(function: Reward) -> Reward:
        _REWARDS.add(name, _checked(name, function))
        return function

    return add


def names() -> list[str]:
    """Return the names of all rewards."""
    return _REWARDS.names()


def get(name: str) -> Reward:
    """Return a reward.

    Raises:
        ConfigError: No reward has this name.
    """
    return _REWARDS.get(name)


def _checked(name: str, function: Reward) -> Reward:
    """Return a reward that refuses what is not a finite number for each turn."""

    @functools.wraps(function)
    def checked(rollout: Rollout) -> Sequence[float]:
        found: list[Any] = list(function(rollout))
        numbers = [isinstance(value, int | float) and math.isfinite(value) for value in found]
        if not all(numbers) or len(found) != len(rollout.turns):
            raise TableError(
                f"reward {name!r} must return {len(rollout.turns)} finite numbers, one for each "
                f"turn of the rollout, got {found!r:.80}"
            )
        return found

    return checked


@reward("environment")
def environment(rollout: Rollout) -> list[float]:
    """Return the environment's own rewards."""
    return [turn.reward for turn in rollout.turns]


@reward("success")
def success(rollout: Rollout) -> list[float]:
    """Return 1 at the last turn of a solved episode, 0 elsewhere."""
    return _at_the_end(rollout, float(rollout.success))


@reward("score")
def score(rollout: Rollout) -> list[float]:
    """Return the episode's score at its last turn, 0 elsewhere."""
    return _at_the_end(rollout, rollout.score)


def _at_the_end(rollout: Rollout, value: float) -> list[float]:
    return [0.0] * (len(rollout.turns) - 1) + [value]
