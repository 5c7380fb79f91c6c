"""The process group: the processes that train together, one per GPU, and their collectives.

`torchrun` starts them; without it there is one process, and a collective returns its input. All
processes call each collective in the same order; objects are pickled and ordered by rank.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from agentgyms.core.errors import AgentGymsError
from harness.distributed.joining import TIMEOUT, first_line, is_connection_error, join
from harness.distributed.parent import end_with_parent
from harness.types.errors import ConfigError, HarnessError, TrainingError, TrainingStopped

_log = logging.getLogger(__name__)
if TYPE_CHECKING:
    import torch

_T = TypeVar("_T")

_EXIT_DELAY_S: Final = 2.0
"""The other processes wait before they exit: `torchrun` kills the first one once another exits."""

_RELEASE_DELAY_S: Final = 0.5
"""Seconds that a finished process waits before it exits, so that gloo's threads can take the GIL.

Each thread takes it after a collective to release its tensors. A thread that still waits for the
GIL when the interpreter exits would abort the process. The threads of a sharded model's group
outlive `destroy_process_group`, because torch keeps the model's mesh in caches.
"""


class ReportedElsewhere(HarnessError):
    """Training cannot go on; the first process reports the reason."""


@dataclass(frozen=True, slots=True)
class ProcessGroup:
    """The processes that train together, as one of them sees them."""

    rank: int = 0  # the number of this process, from 0
    size: int = 1  # the number of processes
    # torch's name of this process's device; a single process uses its policy's.
    device_name: str = "cpu"

    @property
    def device(self) -> torch.device:
        """Device of this process."""
        import torch

        return torch.device(self.device_name)

    @property
    def is_first(self) -> bool:
        """Whether this is the first process, which writes files and prints messages."""
        return self.rank == 0

    def team(self, size: int) -> Any:
        """Return torch's group of `size` consecutive processes, this one among them.

        All processes call this; their number is a multiple of `size`.
        """
        from torch import distributed

        return _team(distributed.group.WORLD, size)

    def as_teams(self, size: int) -> ProcessGroup:
        """Return a group with one member per team. Use it to split work, not to communicate."""
        return replace(self, rank=self.rank // size, size=self.size // size)

    def share(self, items: Sequence[_T]) -> Sequence[_T]:
        """Return this process's share of items that all processes have."""
        return items[self.rank :: self.size]

    def padded_share(self, items: Iterable[_T], filler: _T) -> Iterator[_T]:
        """Yield this process's share, padded with `filler` so that all shares have equal length."""
        if self.size == 1:
            yield from items
            return
        every = list(items)
        share = self.share(every)
        yield from share
        # Equal lengths, because each item may lead to a collective that all processes must call.
        for _ in range(math.ceil(len(every) / self.size) - len(share)):
            yield filler

    def gather(self, item: _T) -> list[_T]:
        """Return the items of all processes."""
        if self.size == 1:
            return [item]
        from torch import distributed

        items: list[_T | None] = [None] * self.size
        distributed.all_gather_object(items, item)
        return items  # type: ignore[return-value]

    def any(self, flag: bool) -> bool:
        """Return whether the flag of any process is set."""
        return any(self.gather(flag))

    def gather_or_raise(self, item: _T | None, error: Exception | None = None) -> list[_T]:
        """Return the items of all processes, unless one of them passes an error.

        In that case the first process raises the first error, or a `TrainingError` with it, and the
        other processes raise `ReportedElsewhere`.
        """
        if self.size == 1:
            if error is not None:
                raise error
            return [item]  # type: ignore[list-item]
        # Errors travel as text: an exception of a plug-in may not be picklable.
        text = None if error is None else f"{type(error).__name__}: {error}"
        gathered = self.gather((item, text))
        for rank, (_, message) in enumerate(gathered):
            if message is not None:
                self._raise_for(rank, message, error)
        return [one for one, _ in gathered]  # type: ignore[misc]

    def _raise_for(self, rank: int, message: str, own: Exception | None) -> None:
        if not self.is_first:
            if own is not None and not isinstance(own, AgentGymsError):
                _log.error("process %d of %d", self.rank, self.size, exc_info=own)
            raise ReportedElsewhere(message) from own
        if rank == self.rank and own is not None:
            raise own
        raise TrainingError(f"process {rank} of {self.size} failed: {message}")

    def run_on_all(self, work: Callable[[], _T]) -> _T:
        """Run a function without collectives in all processes; if it fails in one, all raise."""
        item, error = None, None
        try:
            item = work()
        except Exception as e:
            error = e
        self.gather_or_raise(None, error)
        return item  # type: ignore[return-value]

    def run_on_first(self, work: Callable[[], _T]) -> _T:
        """Run a function in the first process and return its result in all processes.

        If it fails, the other processes raise `ReportedElsewhere`.
        """
        if self.size == 1:
            return work()
        item, error = None, None
        if self.is_first:
            try:
                item = work()
            except Exception as e:
                error = e
        return self.gather_or_raise(item, error)[0]


@lru_cache(8)
def _team(world: Any, size: int) -> Any:
    """Return a group of consecutive processes; each new one would open new connections."""
    from torch import distributed

    del world  # only a key of the cache: after a restart of the group the teams are others
    return distributed.new_subgroups(size, timeout=TIMEOUT)[0]  # type: ignore[no-untyped-call]


SINGLE_PROCESS: Final = ProcessGroup()
"""The group of a single process."""


@contextlib.contextmanager
def torchrun_processes() -> Iterator[ProcessGroup]:
    """Initialise the process group that `torchrun` started, and destroy it at the end.

    Processes after the first print errors only. Raises `ConfigError` if a variable that `torchrun`
    sets is missing or invalid. Raises `TrainingError` if another process did not join, has ended or
    does not answer.
    """
    end_with_parent()
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield SINGLE_PROCESS
        return
    from torch import distributed

    processes = _initialize()
    quiet = contextlib.nullcontext() if processes.is_first else _mute()
    try:
        with quiet:
            yield processes
    except ReportedElsewhere:
        time.sleep(_EXIT_DELAY_S)
        raise SystemExit(2) from None
    except TrainingStopped as e:
        time.sleep(_RELEASE_DELAY_S)
        if processes.is_first:
            raise
        raise SystemExit(e.exit_code) from None
    except RuntimeError as e:
        if isinstance(e, HarnessError) or not is_connection_error(e):
            raise
        raise TrainingError(
            f"process {processes.rank} of {processes.size} lost another process, which has ended "
            f"or does not answer; its own message gives the reason ({first_line(e)})"
        ) from e
    finally:
        # Not after an error: other processes may be inside a collective. vLLM's engine may have
        # destroyed the group already.
        if sys.exc_info()[0] is None and distributed.is_initialized():
            time.sleep(_RELEASE_DELAY_S)
            distributed.destroy_process_group()


def _initialize() -> ProcessGroup:
    import torch

    try:
        rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        local = int(os.environ["LOCAL_RANK"])
    except (KeyError, ValueError) as e:
        raise ConfigError(
            f"WORLD_SIZE is {os.environ['WORLD_SIZE']} but {e}: start several processes with "
            "`torchrun --nproc-per-node N -m harness train RECIPE`"
        ) from None
    device = f"cuda:{local}" if torch.cuda.is_available() else "cpu"
    join(rank, size, device)
    return ProcessGroup(rank, size, device)


@contextlib.contextmanager
def _mute() -> Iterator[None]:
    with (
        Path(os.devnull).open("w", encoding="utf-8") as nowhere,
        contextlib.redirect_stdout(nowhere),
    ):
        yield
