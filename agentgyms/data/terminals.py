"""The abilities of terminals: signs of their encoding, colours if wanted, bars that move."""

from __future__ import annotations

import io
import os
import sys


def set_up() -> bool | None:
    """Show `?` for unknown signs; return False for no colours, None to let each stream decide."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # not of a test, or closed by the caller
            stream.reconfigure(errors="replace")
    return False if os.environ.get("NO_COLOR") or is_dumb() else None


def is_dumb() -> bool:
    """Return whether the terminal knows no codes: neither colours nor a cursor that goes back."""
    return os.environ.get("TERM") == "dumb"
