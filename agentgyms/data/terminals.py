"""What terminals can show: signs of their encoding, colours if wanted, bars that move."""

from __future__ import annotations

import io
import os
import sys


def set_up() -> bool | None:
    """Let no sign end a program, and return whether its output has colours.

    A sign that a standard stream's encoding lacks is shown as `?`. None leaves colours to each
    stream: a terminal has them.
    """
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # not of a test, or closed by the caller
            stream.reconfigure(errors="replace")
    return False if os.environ.get("NO_COLOR") or is_dumb() else None


def is_dumb() -> bool:
    """Return whether the terminal knows no codes: neither colours nor a cursor that goes back."""
    return os.environ.get("TERM") == "dumb"
