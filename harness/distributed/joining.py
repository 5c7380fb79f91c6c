"""Connects the processes that train together: minutes to join, hours to work."""

from __future__ import annotations

import os
import sys
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import torch

JOIN_TIMEOUT: Final = timedelta(minutes=5)
"""Longest wait for other processes at the start, when they have nothing to do but to join."""

TIMEOUT: Final = timedelta(hours=3)
"""Longest wait for other processes later: one may still play episodes or start an engine."""

_CONNECTION_ERRORS: Final = (
    "gloo",
    "nccl",
    "connection closed by peer",
    "connection reset",
    "socket",
)
"""Parts of torch's messages about a process that does not answer."""


def join(rank: int, size: int, device: str) -> None:
    """Initialise the default process group, and connect every process with every other.

    The process ends with status 2 and an error if another one did not join within `JOIN_TIMEOUT`.
    If it went on to its usual end, threads that torch has started by then would abort it.
    """
    import torch
    from torch import distributed
    from torch.distributed import distributed_c10d

    minutes = JOIN_TIMEOUT.total_seconds() / 60
    message = (
        f"process {rank} of {size} could not join all others within {minutes:g} minutes: start as "
        "many as torchrun says, on every machine; what kept one from joining, it says itself"
    )
    has_gpu = device != "cpu"
    try:  # objects take the first backend
        backend = "cpu:gloo,cuda:nccl" if has_gpu else "gloo"
        distributed.init_process_group(backend, timeout=JOIN_TIMEOUT)
        distributed.all_reduce(torch.zeros(1))
    except RuntimeError as e:
        _end_at_once(f"{message} ({first_line(e)})")
    if has_gpu:
        _join_gpus(torch.device(device), message)
    distributed_c10d._set_pg_timeout(TIMEOUT)


def _join_gpus(device: torch.device, message: str) -> None:
    """Connect the GPUs; NCCL alone would wait without end for a process that has ended."""
    import torch
    from torch import distributed

    timer = threading.Timer(JOIN_TIMEOUT.total_seconds(), _end_at_once, [message])
    timer.daemon = True
    timer.start()
    torch.cuda.set_device(device)
    distributed.all_reduce(torch.zeros(1, device=device))
    torch.cuda.synchronize(device)
    timer.cancel()


def _end_at_once(message: str) -> None:
    sys.stderr.write(f"error: {message}\n")
    sys.stderr.flush()
    os._exit(2)


def is_connection_error(error: RuntimeError) -> bool:
    """Return whether an error means that another process does not answer."""
    from torch import distributed

    text = str(error).lower()
    return isinstance(error, distributed.DistError) or any(
        part in text for part in _CONNECTION_ERRORS
    )


def first_line(error: Exception) -> str:
    """Return the first line of an error's message."""
    return f"{str(error).strip().splitlines()[0]:.200}"
