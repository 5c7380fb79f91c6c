"""Plays seeded random episodes, junk actions included, and compares them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from agentgyms.core.outcome import shown

Make = Callable[[], Any]

JUNK_ACTIONS: Final = (
    "",
    "   ",
    "xyzzy",
    "LOOK",
    "look\nlook",
    "厨房 🙂",
    "\x00\ud800",
    "a" * 9000,
    "'\"<b>{}%s",
    "print(f\"{'\xa0'}\")",
    "x = 0x" + "f" * 4000,
)
"""Malformed actions that every environment must handle."""

EPISODES: Final = 3

_MAX_TURNS: Final = 60


def play(
    env: Any, seed: int, *, junk: float = 0.1
) -> Iterator[tuple[Any, tuple[float, bool, bool], dict[str, Any]]]:
    """Play with seeded admissible and junk actions; yield (observation, (reward, ends), info)."""
    rng = random.Random(seed)
    observation, info = env.reset(seed=seed)
    yield observation, (0.0, False, False), info
    for _ in range(_MAX_TURNS):
        listed = info["admissible_actions"]
        action = rng.choice(listed) if listed and rng.random() > junk else rng.choice(JUNK_ACTIONS)
        observation, reward, terminated, truncated, info = env.step(action)
        yield observation, (float(reward), terminated, truncated), info
        if terminated or truncated:
            return


def assert_equal_episodes(first: Any, second: Any, seed: int) -> None:
    """Raise `AssertionError` unless both play equal episodes, and equal unseeded ones after it."""
    for turn, (one, two) in enumerate(zip(play(first, seed), play(second, seed), strict=True)):
        if plain(one) != plain(two):
            raise AssertionError(
                f"seed {seed}, turn {turn}: {shown(one)} differs from {shown(two)}"
            )
    one, two = first.reset(), second.reset()
    if plain(one) != plain(two):
        raise AssertionError(
            f"seed {seed}: the next unseeded episodes differ: {shown(one)}, {shown(two)}"
        )


def assert_raises(expected: type[Exception], call: Callable[[], Any]) -> None:
    """Raise `AssertionError` unless `call` raises what is expected, with a message."""
    try:
        call()
    except expected as e:
        if str(e):
            return
    raise AssertionError(f"{expected.__name__} with a message was not raised")


def plain(value: Any) -> Any:
    """Return `value` in a comparable form: nan equals nan, and arrays compare by content."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return (value.shape, value.dtype.str, value.tobytes())
    return "nan" if isinstance(value, float) and value != value else value
