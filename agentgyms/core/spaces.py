"""`UnicodeText`: the space of any Python string up to a length.

Gymnasium's `spaces.Text` takes characters of a charset, so it rejects blanks and newlines. In the
default `AsyncVectorEnv` it always returns the texts that there were when the vector was made. This
space checks only the length, and registers shared-memory handlers that return the current texts.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable
from typing import Any, Final

import gymnasium.vector.utils.shared_memory as gym_shared_memory
import gymnasium.wrappers.utils as gym_wrapper_utils
import numpy as np
from gymnasium.spaces import Dict, Space

_SAMPLE_ALPHABET = np.array(list("abcdefghijklmnopqrstuvwxyz 0123456789 éß中文🙂\n"))
_LONGEST_SAMPLE = 24
_BYTES_PER_CHARACTER = 4


class UnicodeText(Space[str]):
    """Any string of at most `max_length` characters (code points), the empty one included."""

    def __init__(self, max_length: int, *, seed: int | np.random.Generator | None = None) -> None:
        """Raise `ValueError` unless `max_length` is a positive integer."""
        if not isinstance(max_length, int) or max_length < 1:
            raise ValueError(f"max_length must be a positive integer, got {max_length!r}")
        self.max_length = max_length
        super().__init__(dtype=str, seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        """Return False: a text is not an array."""
        return False

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Return a short random text. Masks are not supported and must be None."""
        if mask is not None or probability is not None:
            raise ValueError("UnicodeText.sample takes neither mask nor probability")
        length = int(self.np_random.integers(1, min(self.max_length, _LONGEST_SAMPLE) + 1))
        return "".join(self.np_random.choice(_SAMPLE_ALPHABET, length))

    def contains(self, x: Any) -> bool:
        """Return whether `x` is a string of at most `max_length` characters."""
        return isinstance(x, str) and len(x) <= self.max_length

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnicodeText) and other.max_length == self.max_length

    def __hash__(self) -> int:
        return hash((UnicodeText, self.max_length))

    def __repr__(self) -> str:
        return f"UnicodeText({self.max_length})"

    def to_jsonable(self, sample_n: Iterable[str]) -> list[str]:
        """Return the texts as a list."""
        return list(sample_n)

    def from_jsonable(self, sample_n: list[Any]) -> list[str]:
        """Return the texts of a list made by `to_jsonable`."""
        return [str(text) for text in sample_n]


class _SharedTexts(tuple[str, ...]):
    """The texts in shared memory, decoded on each access.

    `AsyncVectorEnv` reads the memory once, at construction. Later it returns deep copies of this
    object, or with `copy=False` the object itself. So this object reads the memory whenever it is
    copied or read. It is a tuple because the batched space needs one; only the operator `%` uses
    the tuple's items.
    """

    _lengths: Any
    _buffer: Any
    _width: int

    def __new__(cls, lengths: Any, buffer: Any, n: int, width: int) -> _SharedTexts:
        # n empty items: only len() reads them
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

    def __radd__(self, other: tuple[Any, ...]) -> tuple[Any, ...]:
        return other + self._read()

    def __copy__(self) -> tuple[str, ...]:
        return self._read()

    def __deepcopy__(self, memo: dict[int, Any]) -> tuple[str, ...]:
        return self._read()

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return tuple, (self._read(),)

    __hash__ = None  # type: ignore[assignment]


def _reading(name: str) -> Callable[..., Any]:
    """Return the method `name` of tuples, applied to the current texts."""

    def method(self: _SharedTexts, *args: Any) -> Any:
        given = (arg._read() if isinstance(arg, _SharedTexts) else arg for arg in args)
        return getattr(self._read(), name)(*given)

    return method


_READING: Final = (
    *("__getitem__", "__iter__", "__contains__", "__repr__", "count", "index"),
    *("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"),
    *("__add__", "__mul__", "__rmul__"),
)
for _name in _READING:
    setattr(_SharedTexts, _name, _reading(_name))


@gym_wrapper_utils.create_zero_array.register(UnicodeText)
def _create_zero(_: UnicodeText) -> str:  # type: ignore[misc]
    return ""


@gym_shared_memory.create_shared_memory.register(UnicodeText)
def _create(space: UnicodeText, n: int = 1, ctx: Any = multiprocessing) -> tuple[Any, Any]:
    # lengths in bytes [n], and n slots of the longest text in UTF-8
    return ctx.Array("q", n), ctx.Array("B", n * space.max_length * _BYTES_PER_CHARACTER)


@gym_shared_memory.read_from_shared_memory.register(UnicodeText)
def _read(space: UnicodeText, shared_memory: tuple[Any, Any], n: int = 1) -> _SharedTexts:
    lengths, buffer = shared_memory
    return _SharedTexts(lengths, buffer, n, space.max_length * _BYTES_PER_CHARACTER)


@gym_shared_memory.write_to_shared_memory.register(UnicodeText)
def _write(space: UnicodeText, index: int, value: str, shared_memory: tuple[Any, Any]) -> None:
    lengths, buffer = shared_memory
    if len(value) > space.max_length:
        raise ValueError(f"text of {len(value)} characters is not in {space!r}")
    # surrogatepass: an action may hold lone surrogates, which strict UTF-8 refuses
    encoded = value.encode("utf-8", "surrogatepass")
    start = index * space.max_length * _BYTES_PER_CHARACTER
    memoryview(buffer.get_obj()).cast("B")[start : start + len(encoded)] = encoded
    lengths.get_obj()[index] = len(encoded)


def longest_text(space: Space[Any], default: int) -> int:
    """Return the length of the longest text in a space; `default` if it has no `UnicodeText`."""
    parts = space.spaces.values() if isinstance(space, Dict) else [space]
    return next((one.max_length for one in parts if isinstance(one, UnicodeText)), default)
