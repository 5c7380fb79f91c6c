"""Ends a process when its parent has ended: by the kernel (Linux), or by a watching thread."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
from typing import Final

_STARTED_BY_TORCHRUN: Final = "TORCHELASTIC_RUN_ID"
_PR_SET_PDEATHSIG: Final = 1
_WATCH_S: Final = 0.5


def has_torchrun() -> bool:
    """Return whether `torchrun` started this process."""
    return _STARTED_BY_TORCHRUN in os.environ


def end_with_parent() -> None:
    """Let this process end when its parent ends, if `torchrun` started it."""
    if has_torchrun():
        follow_parent()


def follow_parent() -> None:
    """Let this process end when its parent ends."""
    parent = os.getppid()
    _ask_kernel()
    threading.Thread(target=_watch, args=(parent,), daemon=True, name="parent").start()


def _ask_kernel() -> None:
    """Have the kernel kill this process when the thread that started it ends."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_WATCH_S)
    os.kill(os.getpid(), signal.SIGKILL)
