"""`UnicodeText`: the space of any Python string up to a length.

Gymnasium's `spaces.Text` takes single characters from a charset, so it rejects blanks and newlines,
and in the default `AsyncVectorEnv` it returns the texts of construction time for ever. This space
checks the length alone and registers shared-memory handlers that are right there.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Iterator
from typing import Any

import gymnasium.vector.utils.shared_memory as gym_shared_memory
import numpy as np
from gymnasium.spaces import Space

_SAMPLE_ALPHABET = np.array(list("abcdefghijklmnopqrstuvwxyz 0123456789 éß中文🙂\n"))
_LONGEST_SAMPLE = 24
_BYTES_PER_CHARACTER = 4


class UnicodeText(Space[str]):
    """Any string of at most `max_length` characters, the empty one included.

    Args:
        max_length: Longest text in characters (code points).
        seed: Seed of `sample`.
    """

    def __init__(self, max_length: int, *, seed: int | np.random.Generator | None = None) -> None:
        """Raise `ValueError` unless `max_length` is a positive integer."""
        if not isinstance(max_length, int) or max_length < 1:
            raise ValueError(f"max_length must be a positive integer, got {max_length!r}")
        self.max_length = max_length
        super().__init__(dtype=str, seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        """Return False: a text is no array."""
        return False

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Return a short random text. Masks have no meaning here and must be None."""
        if mask is not None or probability is not None:
            raise ValueError("UnicodeText.sample takes neither mask nor probability")
        length = int(self.np_random.integers(1, min(self.max_length, _LONGEST_SAMPLE) + 1))
        return "".join(self.np_random.choice(_SAMPLE_ALPHABET, length))

    def contains(self, x: Any) -> bool:
        """Return whether `x` is a string of at most `max_length` characters."""
        return isinstance(x, str) and len(x) <= self.max_length

    def __eq__(self, other: object) -> bool:
        """Return whether `other` is a UnicodeText of the same length."""
        return isinstance(other, UnicodeText) and other.max_length == self.max_length

    def __hash__(self) -> int:
        """Return a hash that agrees with `==`."""
        return hash((UnicodeText, self.max_length))

    def __repr__(self) -> str:
        """Return the constructor call."""
        return f"UnicodeText({self.max_length})"

    def to_jsonable(self, sample_n: Iterable[str]) -> list[str]:
        """Return the texts as a list."""
        return list(sample_n)

    def from_jsonable(self, sample_n: list[Any]) -> list[str]:
        """Return the texts of a list made by `to_jsonable`."""
        return [str(text) for text in sample_n]


class _LiveTexts(tuple[str, ...]):
    """The texts now in shared memory, decoded on each access.

    `AsyncVectorEnv` reads the shared memory once, at construction, and afterwards returns deep
    copies of what it got. So what it gets decodes itself when it is copied or looked at.
    """

    _lengths: Any
    _buffer: Any
    _width: int

    def __new__(cls, lengths: Any, buffer: Any, n: int, width: int) -> _LiveTexts:
        view = super().__new__(cls, ("",) * n)
        view._lengths, view._buffer, view._width = lengths, buffer, width
        return view

    def _read(self) -> tuple[str, ...]:
        memory = memoryview(self._buffer.get_obj()).cast("B")
        lengths = self._lengths.get_obj()
        starts = range(0, len(self) * self._width, self._width)
        return tuple(
            str(memory[start : start + size], "utf-8", "surrogatepass")
            for start, size in zip(starts, lengths, strict=True)
        )

    def __getitem__(self, index: Any) -> Any:
        return self._read()[index]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __eq__(self, other: object) -> bool:
        return self._read() == other

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._read())

    def __deepcopy__(self, memo: dict[int, Any]) -> tuple[str, ...]:
        return self._read()


@gym_shared_memory.create_shared_memory.register(UnicodeText)
def _create(space: UnicodeText, n: int = 1, ctx: Any = multiprocessing) -> tuple[Any, Any]:
    return ctx.Array("q", n), ctx.Array("B", n * space.max_length * _BYTES_PER_CHARACTER)


@gym_shared_memory.read_from_shared_memory.register(UnicodeText)
def _read(space: UnicodeText, shared_memory: tuple[Any, Any], n: int = 1) -> _LiveTexts:
    lengths, buffer = shared_memory
    return _LiveTexts(lengths, buffer, n, space.max_length * _BYTES_PER_CHARACTER)


@gym_shared_memory.write_to_shared_memory.register(UnicodeText)
def _write(space: UnicodeText, index: int, value: str, shared_memory: tuple[Any, Any]) -> None:
    lengths, buffer = shared_memory
    if len(value) > space.max_length:
        raise ValueError(f"text of {len(value)} characters is not in {space!r}")
    encoded = value.encode("utf-8", "surrogatepass")
    start = index * space.max_length * _BYTES_PER_CHARACTER
    memoryview(buffer.get_obj()).cast("B")[start : start + len(encoded)] = encoded
    lengths.get_obj()[index] = len(encoded)
