"""Generators of random numbers made in ways that are quick, with the numbers of the slow ones."""

from __future__ import annotations

import copy
from typing import Any, Final, cast

import numpy as np
from numpy.random.bit_generator import ISpawnableSeedSequence, SeedSequence

_WORD: Final = 2**32


def generator_of(*numbers: int) -> np.random.Generator:
    """Return what `numpy.random.default_rng([*numbers])` does.

    Raises:
        ValueError: A number is negative.
    """
    return np.random.default_rng(seeds_of(*numbers))


def seeds_of(*numbers: int) -> SeedSequence:
    """Return what `numpy.random.SeedSequence([*numbers])` does.

    Raises:
        ValueError: A number is negative.
    """
    if min(numbers) < 0:
        raise ValueError(f"seeds are integers from 0 on, got {numbers}")
    words: list[int] = []
    for number in numbers:
        words.append(number % _WORD)
        while number := number // _WORD:
            words.append(number % _WORD)
    return SeedSequence(np.array(words, np.uint32))


def from_state(state: Any) -> np.random.Generator:
    """Return a generator in a state that `generator.bit_generator.state` gave, of PCG64.

    It has not been seeded, so the children it spawns depend on its state.

    Raises:
        TypeError: The state is none; in other ways also KeyError, ValueError, OverflowError.
    """
    bits = np.random.PCG64(cast(SeedSequence, _Unseeded(state)))
    bits.state = state
    return np.random.Generator(bits)


def copied(generator: np.random.Generator) -> np.random.Generator:
    """Return an independent generator that will draw the same numbers."""
    state = state_of(generator)
    return copy.deepcopy(generator) if state is None else from_state(state)


def state_of(generator: np.random.Generator) -> Any:
    """Return what `from_state` takes; None of a generator that is not PCG64."""
    bits = generator.bit_generator
    return bits.state if type(bits) is np.random.PCG64 else None


class _Unseeded(ISpawnableSeedSequence):
    """Stands for the seed of a generator whose state is given: true seeds take long to work out."""

    def __init__(self, state: Any) -> None:
        self._state = state
        self._seeds: SeedSequence | None = None

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
        """Return zeros, which the given state replaces."""
        return np.zeros(n_words, dtype)

    def spawn(self, n_children: int) -> Any:
        """Return seeds of generators that share nothing with this one."""
        if self._seeds is None:
            self._seeds = SeedSequence(self._state["state"]["state"])
        return self._seeds.spawn(n_children)
