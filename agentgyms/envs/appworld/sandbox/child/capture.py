"""Captures printed text, up to a length."""

from __future__ import annotations

import io
from typing import Final

# A character takes up to twelve bytes in a line, which has at most `line.AGENT_BYTES`.
MAX_CHARACTERS: Final = 1 << 16


class Capture(io.TextIOBase):
    """A text stream that keeps the first and the last half of `MAX_CHARACTERS`, and no more."""

    def __init__(self) -> None:
        self._half = MAX_CHARACTERS // 2
        self._head: list[str] = []
        self._tail: list[str] = []
        self._in_head = 0
        self._in_tail = 0
        self.num_characters = 0
        """Number of characters written, with the dropped ones."""

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, text: str) -> int:
        """Write a text and return its length; raise `TypeError` if it is not a string."""
        if not isinstance(text, str):
            raise TypeError(f"string argument expected, got {type(text).__name__!r}")
        self.num_characters += len(text)
        for_head = text[: self._half - self._in_head]
        if for_head:
            self._head.append(for_head)
            self._in_head += len(for_head)
        if len(for_head) < len(text):
            self._append_to_tail(text[len(for_head) :])
        return len(text)

    def _append_to_tail(self, text: str) -> None:
        text = text[-self._half :]
        self._tail.append(text)
        self._in_tail += len(text)
        if self._in_tail > 2 * self._half:
            self._tail = ["".join(self._tail)[-self._half :]]
            self._in_tail = self._half

    def text(self) -> str:
        """Return the captured text, with a line in the middle that says how much was dropped."""
        tail = "".join(self._tail)[-self._half :]
        missing = self.num_characters - self._in_head - len(tail)
        gap = f"\n[{missing} characters are not kept]\n" if missing else ""
        return "".join(self._head) + gap + tail


def shortened(text: str) -> str:
    """Return a text as `Capture` captures it."""
    capture = Capture()
    capture.write(text)
    return capture.text()
