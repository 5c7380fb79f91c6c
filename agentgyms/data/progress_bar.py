"""The progress bar of every command: a bar on a terminal, plain lines now and then in a file."""

from __future__ import annotations

import math
import sys
import time
from typing import Any, Final

from tqdm import tqdm

EVERY_S: Final = 30.0
"""Least seconds between two lines in a file."""

_LINE: Final = "{desc}: {n_fmt} of {total_fmt} {unit}, {elapsed} so far{postfix}"
_LINE_WITHOUT_TOTAL: Final = "{desc}: {n_fmt} {unit}, {elapsed} so far{postfix}"


class ProgressBar(tqdm):  # type: ignore[type-arg]
    """tqdm's bar on a terminal; elsewhere a line twice a minute, for work that takes so long.

    `line` is the format of a line in a file; None takes one with the count and the time so far.
    """

    def __init__(self, *arguments: Any, line: str | None = None, **settings: Any) -> None:
        self._is_plain = not (settings.get("file") or sys.stderr).isatty()
        self._said_at = time.monotonic()
        if self._is_plain:
            counted = settings.get("total") is not None or (
                bool(arguments) and hasattr(arguments[0], "__len__")
            )
            settings |= {"mininterval": 0.0, "miniters": 1}  # `display` says when
            settings["bar_format"] = line or (_LINE if counted else _LINE_WITHOUT_TOTAL)
        super().__init__(*arguments, **settings)

    def display(self, msg: str | None = None, pos: int | None = None) -> None:
        """Draw the bar, or write a line if the last one was some time ago."""
        if not self._is_plain:
            super().display(msg, pos)
        elif msg is None and time.monotonic() - self._said_at >= EVERY_S:
            self._said_at = time.monotonic()
            self.fp.write(f"{self}\n")
            self.fp.flush()

    def clear(self, nolock: bool = False) -> None:
        """Make room for another message; a line stays."""
        if not self._is_plain:
            super().clear(nolock)

    def close(self) -> None:
        """End the bar."""
        if self._is_plain:
            self.delay = math.inf  # else tqdm would return the carriage
        super().close()
