"""`Chance`, the same in every version of Python, and numpy's generators, made and copied faster."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Final, TypeVar, cast

import numpy as np
from numpy.random.bit_generator import ISpawnableSeedSequence, SeedSequence

T = TypeVar("T")

_WORD: Final = 2**32


class Chance:
    """A generator seeded by a name; it uses only `random()`, whose sequence Python guarantees."""

    def __init__(self, *name: object) -> None:
        digest = blake2b("/".join(map(str, name)).encode(), digest_size=8).digest()
        self._draw = random.Random(int.from_bytes(digest, "big")).random

    def below(self, limit: int) -> int:
        """Return an integer in [0, limit)."""
        return int(self._draw() * limit)

    def between(self, low: int, high: int) -> int:
        """Return an integer in [low, high], both included."""
        return low + self.below(high - low + 1)

    def pick(self, items: Sequence[T]) -> T:
        """Return a random item."""
        return items[self.below(len(items))]

    def sample(self, items: Sequence[T], count: int) -> list[T]:
        """Return `count` different items, or all of them, in random order."""
        left = list(items)
        return [left.pop(self.below(len(left))) for _ in range(min(count, len(left)))]


def drawn(seed: int, redraws: Sequence[Sequence[int]], turn: int) -> float:
    """Return a turn's number in [0, 1): a function of seed, turn and the last redraw before it.

    `redraws` has the turn after which each was made, and its number.
    """
    last = next((number for after, number in reversed(redraws) if after < turn), -1)
    digest = blake2b(b"%d %d %d" % (seed, last, turn), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) * 2.0**-53


def generator_of(*numbers: int) -> np.random.Generator:
    """Return `numpy.random.default_rng([*numbers])`, faster; `ValueError` for a negative one."""
    return np.random.default_rng(seeds_of(*numbers))


def seeds_of(*numbers: int) -> SeedSequence:
    """Return `numpy.random.SeedSequence([*numbers])`, faster; `ValueError` for a negative one."""
    if min(numbers) < 0:
        raise ValueError(f"seeds are integers from 0 on, got {numbers}")
    # as numpy does: each integer as 32-bit words, the lowest first
    words: list[int] = []
    for number in numbers:
        words.append(number % _WORD)
        while number := number // _WORD:
            words.append(number % _WORD)
    return SeedSequence(np.array(words, np.uint32))


def from_state(state: Any) -> np.random.Generator:
    """Return a PCG64 generator in a state that `generator.bit_generator.state` returned.

    It has no seed, so the children that it spawns depend on its state. An invalid state raises
    `TypeError`, `KeyError`, `ValueError` or `OverflowError`.
    """
    # a real seed would be hashed, only to be overwritten by the state
    bits = np.random.PCG64(cast(SeedSequence, _Unseeded(state)))
    bits.state = state
    return np.random.Generator(bits)


def copied(generator: np.random.Generator) -> np.random.Generator:
    """Return an independent generator with the same future numbers."""
    state = state_of(generator)
    return copy.deepcopy(generator) if state is None else from_state(state)


def state_of(generator: np.random.Generator) -> Any:
    """Return the state for `from_state`; None if the generator is not PCG64."""
    bits = generator.bit_generator
    return bits.state if type(bits) is np.random.PCG64 else None


class _Unseeded(ISpawnableSeedSequence):
    """A placeholder seed of a generator whose state is set: real seeds are slow to compute."""

    def __init__(self, state: Any) -> None:
        self._state = state
        self._seeds: SeedSequence | None = None

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
        return np.zeros(n_words, dtype)

    def spawn(self, n_children: int) -> Any:
        if self._seeds is None:
            self._seeds = SeedSequence(self._state["state"]["state"])
        return self._seeds.spawn(n_children)
