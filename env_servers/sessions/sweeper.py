"""A thread that closes expired sessions from time to time."""

from __future__ import annotations

import threading
import weakref
from typing import Protocol


class Swept(Protocol):
    """An object with parts that expire."""

    def sweep(self) -> int:
        """Close the expired parts and return their number."""


def start(swept: Swept, pause_s: float) -> None:
    """Start a thread that sweeps for as long as an object lives."""
    stop = threading.Event()
    weakref.finalize(swept, stop.set)
    arguments = (weakref.ref(swept), stop, pause_s)
    threading.Thread(target=_sweep, args=arguments, name="sweeper", daemon=True).start()


def _sweep(swept: weakref.ref[Swept], stop: threading.Event, pause_s: float) -> None:
    while not stop.wait(pause_s):
        alive = swept()
        if alive is None:
            return
        alive.sweep()
        del alive
