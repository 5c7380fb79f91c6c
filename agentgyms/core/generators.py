"""Faster ways to create numpy generators, with the same numbers."""

from __future__ import annotations

import copy
from typing import Any, Final, cast

import numpy as np
from numpy.random.bit_generator import ISpawnableSeedSequence, SeedSequence

_WORD: Final = 2**32


def generator_of(*numbers: int) -> np.random.Generator:
    """Return the same generator as `numpy.random.default_rng([*numbers])`.

    Raises:
        ValueError: A number is negative.
    """
    return np.random.default_rng(seeds_of(*numbers))


def seeds_of(*numbers: int) -> SeedSequence:
    """Return the same seeds as `numpy.random.SeedSequence([*numbers])`.

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
    """Return a PCG64 generator in a state that `generator.bit_generator.state` returned.

    It has no seed, so the children that it spawns depend on its state.

    Raises:
        TypeError: The state is invalid; also KeyError, ValueError and OverflowError.
    """
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
        """Return zeros, which the state replaces."""
        return np.zeros(n_words, dtype)

    def spawn(self, n_children: int) -> Any:
        """Return seeds of independent generators."""
        if self._seeds is None:
            self._seeds = SeedSequence(self._state["state"]["state"])
        return self._seeds.spawn(n_children)
