"""The progress bar of every command; a thread draws it while the work itself says nothing."""

from __future__ import annotations

import math
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Final

from tqdm import tqdm

from agentgyms.data.terminals import is_dumb

EVERY_S: Final = 8.0
"""Least seconds before the first line in a file and between two, of all bars."""

_BEAT_S: Final = 2.0
"""Seconds between two looks of the thread."""

_WORKING: Final = "{desc}: {elapsed} so far{postfix}"

_LINE: Final = "{desc}: {n_fmt} of {total_fmt} {unit}, {elapsed} so far{postfix}"
_LINE_WITHOUT_TOTAL: Final = "{desc}: {n_fmt} {unit}, {elapsed} so far{postfix}"


class ProgressBar(tqdm):  # type: ignore[type-arg]
    """tqdm's bar on a terminal; elsewhere, or if it is dumb, a line every 8 to 10 s.

    `line` is the format of a line in a file; None takes one with the count and the time so far.
    `beside` returns the text behind the bar. A bar that does not beat is drawn only when it is
    updated. A program whose standard error is a log takes the lines of all bars with `say`.
    """

    say: ClassVar[Callable[[str], None] | None] = None
    _next_line: float | None = None  # when any bar may write a line

    def __init__(
        self,
        *arguments: Any,
        line: str | None = None,
        beside: Callable[[], str] | None = None,
        beats: bool = True,
        **settings: Any,
    ) -> None:
        shown = settings.get("file") or sys.stderr
        if shown is None:  # a process without a standard error stream
            settings["disable"] = True
        self._is_plain = bool(ProgressBar.say) or shown is None or not shown.isatty() or is_dumb()
        self._beside, self._ended = beside, threading.Event()
        self._began = time.monotonic()
        if ProgressBar._next_line is None:
            ProgressBar._next_line = time.monotonic() + EVERY_S
        if self._is_plain:
            counted = settings.get("total") is not None or (
                bool(arguments) and hasattr(arguments[0], "__len__")
            )
            settings |= {"mininterval": 0.0, "miniters": 1}  # `display` says when
            settings["bar_format"] = line or (_LINE if counted else _LINE_WITHOUT_TOTAL)
        super().__init__(*arguments, **settings)
        if beats and not self.disable:
            own = (weakref.ref(self), self._ended)
            threading.Thread(target=_beat, args=own, daemon=True, name="progress bar").start()

    def display(self, msg: str | None = None, pos: int | None = None) -> None:
        """Draw the bar, or write a line if the last one was some time ago."""
        if self._beside is not None:
            self.postfix = self._beside()
        if not self._is_plain:
            super().display(msg, pos)
        elif msg is None and self._is_due():
            ProgressBar._next_line = time.monotonic() + EVERY_S
            if ProgressBar.say:
                ProgressBar.say(str(self))
            else:
                self.fp.write(f"{self}\n")
                self.fp.flush()

    def _is_due(self) -> bool:
        """Return whether a line may be written; work that is soon done writes none."""
        now = time.monotonic()
        return now >= (self._next_line or 0.0) and now - self._began >= min(_BEAT_S, EVERY_S)

    def clear(self, nolock: bool = False) -> None:
        """Make room for another message; a line stays."""
        if not self._is_plain:
            super().clear(nolock)

    def close(self) -> None:
        """End the bar."""
        self._ended.set()
        if self._is_plain:
            self.delay = math.inf  # else tqdm would return the carriage
        super().close()


def _beat(found: weakref.ref[ProgressBar], ended: threading.Event) -> None:
    """Draw a bar again and again until it ends, or nothing refers to it."""
    while not ended.wait(_BEAT_S):
        bar = found()
        if bar is None:
            return
        with tqdm.get_lock():  # type: ignore[no-untyped-call]
            if not ended.is_set():
                bar.refresh(nolock=True)
                bar.delay = 0  # it is on the screen now, and `close` has to clear it
        del bar


@contextmanager
def working(title: str, *, is_shown: bool = True) -> Iterator[Callable[[str], None]]:
    """Show work that takes 2 s or more, with its time; yield a function that sets the title."""
    shown: dict[str, Any] = {
        "bar_format": _WORKING,
        "line": _WORKING,
        "leave": False,
        "delay": _BEAT_S,
    }
    with ProgressBar(total=None, desc=title, disable=not is_shown, **shown) as bar:

        def show(text: str) -> None:
            if bar.desc != text:
                bar.set_description_str(text)

        yield show
