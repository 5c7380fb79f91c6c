"""The training reward: of an episode's turns, by name or as a weighted sum of names."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from harness.types.errors import ConfigError, TableError
from harness.types.hyperparameters import Registry
from harness.types.rollout import Rollout

Reward = Callable[[Rollout], Sequence[float]]
"""`rollout -> a number for each of its turns`, before `method.reward_scale`."""


_REWARDS: Registry[Reward] = Registry(
    "reward", make_entry=lambda name, found: _checked(name, found) if callable(found) else None
)
names = _REWARDS.names


def reward(name: str) -> Callable[[Reward], Reward]:
    """Register the decorated function as reward `name`, for `method.reward`."""

    def add(function: Reward) -> Reward:
        _REWARDS.add(name, _checked(name, function))
        return function

    return add


def get(expression: str) -> Reward:
    """Return a reward by name, or a sum like `"success - 0.01 * turns"`; else `ConfigError`."""
    parts = re.split(r"\s+([+-])\s+", expression.strip())
    if len(parts) == 1 and "*" not in expression:
        return _REWARDS.get(expression)
    terms = [_term(expression, part) for part in parts[::2]]
    signs = [1.0, *(1.0 if sign == "+" else -1.0 for sign in parts[1::2])]
    weighted = [(s * weight, own) for s, (weight, own) in zip(signs, terms, strict=True)]

    def total(rollout: Rollout) -> list[float]:
        found = [[weight * value for value in own(rollout)] for weight, own in weighted]
        return [math.fsum(values) for values in zip(*found, strict=True)]

    return total


def _term(expression: str, part: str) -> tuple[float, Reward]:
    """Return the weight and the reward of a term of a sum: `NAME` or `WEIGHT * NAME`."""
    found = re.fullmatch(r"(?:(\d+\.?\d*(?:[eE]-?\d+)?)\s*\*\s*)?([^\s*]+)", part)
    if found is None or not math.isfinite(weight := float(found[1] or 1)):
        raise ConfigError(
            f"the reward {expression!r:.80} is no sum: expected names of rewards with weights, "
            "such as 'success - 0.01 * turns'"
        )
    return weight, _REWARDS.get(found[2])


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


@reward("turns")
def turns(rollout: Rollout) -> list[float]:
    """Return 1 at each turn, whose weight in a sum is what a turn costs."""
    return [1.0] * len(rollout.turns)


@reward("tokens")
def tokens(rollout: Rollout) -> list[float]:
    """Return the number of tokens that the policy sampled for each turn, thoughts included."""
    return [float(turn.num_sampled) for turn in rollout.turns]


def _at_the_end(rollout: Rollout, value: float) -> list[float]:
    return [0.0] * (len(rollout.turns) - 1) + [value]
