"""Contract test of forks: what follows a fork is what follows the same turns played again."""

from __future__ import annotations

import random
from contextlib import closing
from typing import Any, Final, NamedTuple

from agentgyms.core.env import TextEnv
from agentgyms.core.errors import BadOption
from agentgyms.core.experts import Expert
from agentgyms.core.outcome import shown
from agentgyms.testing.playing import JUNK_ACTIONS, Make, plain

_TURNS: Final = 12
"""A fork is made before one of these turns."""

_AFTER: Final = 5


class _Point(NamedTuple):
    """Where an episode is forked, and what both go on with."""

    seed: int
    turn: int
    after: int


def check_forks(make: Make, points: int = 20, seed: int = 0) -> None:
    """Check, at random turns of random episodes, that forks go on as replays and originals do.

    An episode is played to a turn and forked there. The fork plays on, then the original, then an
    environment that was reset with the same seed and has repeated the actions. All three must
    return the same observations, rewards, ends and `info`. Actions are admissible ones, the
    expert's with `oracle=True`, and junk.

    Args:
        make: Makes a new environment.
        points: Number of episodes, each forked once.
        seed: Seed of the episodes, the turns and the actions.
    """
    rng = random.Random(seed)
    with closing(make()) as env, closing(make()) as other:
        for _ in range(points):
            point = _Point(rng.randrange(2**31), rng.randrange(_TURNS), rng.randrange(2**31))
            _check_point(env.unwrapped, other.unwrapped, point)


def _check_point(env: TextEnv, other: TextEnv, point: _Point) -> None:
    result: tuple[Any, ...] = env.reset(seed=point.seed)
    rng, actions = random.Random(point.seed), list[str]()
    while len(actions) < point.turn:
        action = _action(env, result[-1], rng)
        before, result = result, env.step(action)
        if _has_ended(result):  # forked before the last turn
            _, result = env.reset(seed=point.seed), before
            for done in actions:
                env.step(done)
            break
        actions.append(action)
    with closing(env.fork()) as twin:
        forked = _future(twin, result[-1], point.after)
    original = _future(env, result[-1], point.after)
    other.reset(seed=point.seed)
    for action in actions:
        other.step(action)
    replayed = _future(other, result[-1], point.after)
    for name, found in (("its original", original), ("a replay", replayed)):
        for number, (one, two) in enumerate(zip(forked, found, strict=True)):
            assert one == two, (
                f"seed {point.seed}: a fork before turn {len(actions)} and {name} differ "
                f"{number} turns later: {shown(one)}, {shown(two)}"
            )


def _future(env: TextEnv, info: dict[str, Any], seed: int) -> list[Any]:
    """Return what a few random turns return, from a state whose `info` is given, and a reset."""
    rng, seen = random.Random(seed), list[Any]()
    for _ in range(_AFTER):
        result = env.step(_action(env, info, rng))
        seen.append(plain(result))
        if _has_ended(result):
            break
        info = result[-1]
    return [*seen, plain(env.reset())]


def _has_ended(result: tuple[Any, ...]) -> bool:
    """Return whether a step ended the episode; a reset does not."""
    return len(result) == 5 and bool(result[2] or result[3])


def _action(env: TextEnv, info: dict[str, Any], rng: random.Random) -> str:
    listed, kind = info["admissible_actions"], rng.random()
    if kind < 0.1 or (not listed and not env.oracle):
        return rng.choice(JUNK_ACTIONS[:6])
    if env.oracle and (kind < 0.5 or not listed):
        try:
            return Expert(env, "best")()
        except BadOption:
            pass
    return str(rng.choice(listed or JUNK_ACTIONS[:6]))
