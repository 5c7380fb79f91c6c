"""The processes that train together, one per GPU: their number, and what they exchange.

Started by `torchrun`; without it there is one process, and every exchange gives back what it got.
All processes call an exchange, in the same order; objects travel pickled, in the processes' order.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from agentgyms.errors import AgentGymsError
from harness.errors import ConfigError, HarnessError, TrainingError, TrainingStopped

_log = logging.getLogger(__name__)
if TYPE_CHECKING:
    import torch

_T = TypeVar("_T")

TIMEOUT: Final = timedelta(hours=3)
"""Longest wait for the others: one may play episodes, or start an engine, while they are done."""

_LOST: Final = ("gloo", "nccl", "connection closed by peer", "connection reset", "socket")
"""Parts of messages by which torch tells that another process does not answer."""


_COURTESY_S: Final = 2.0
"""The others wait before they end, for `torchrun` ends the first one as soon as another has."""

_SETTLING_S: Final = 0.5
"""A process that is done waits before it leaves, so that gloo's threads get the interpreter's lock.

Each takes it after an exchange, to let go of the tensors. One that still waited for it when the
interpreter ends would abort the process, though all went well; and the threads of a sharded
model's group outlive `destroy_process_group`, for torch keeps the model's mesh in caches.
"""


class ToldElsewhere(HarnessError):
    """Training cannot go on, and the first process says why."""


@dataclass(frozen=True, slots=True)
class Ranks:
    """This process among those that train together.

    Attributes:
        rank: Its number, from 0.
        size: How many there are.
        place: Where it computes, as torch names it; one process goes by its policy's device.
    """

    rank: int = 0
    size: int = 1
    place: str = "cpu"

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        import torch

        return torch.device(self.place)

    @property
    def is_first(self) -> bool:
        """Whether this one writes files and speaks to people."""
        return self.rank == 0

    def share(self, items: Sequence[_T]) -> Sequence[_T]:
        """Return this process's part of what all of them know."""
        return items[self.rank :: self.size]

    def deal(self, items: Iterable[_T], filler: _T) -> Iterator[_T]:
        """Yield this process's part, filled up so that all of them get equally many."""
        if self.size == 1:
            yield from items
            return
        known = list(items)
        own = self.share(known)
        yield from own
        for _ in range(math.ceil(len(known) / self.size) - len(own)):
            yield filler

    def gather(self, item: _T) -> list[_T]:
        """Return the items of all processes."""
        if self.size == 1:
            return [item]
        from torch import distributed

        found: list[_T | None] = [None] * self.size
        distributed.all_gather_object(found, item)
        return found  # type: ignore[return-value]

    def any(self, flag: bool) -> bool:
        """Return whether the flag of any process is set."""
        return any(self.gather(flag))

    def agree(self, item: _T | None, error: Exception | None = None) -> list[_T]:
        """Return the items of all processes, unless one of them met an error.

        Raises:
            TrainingError: One did; the first process tells the first of their errors.
            ToldElsewhere: In the others, which have nothing more to say.
        """
        if self.size == 1:
            if error is not None:
                raise error
            return [item]  # type: ignore[list-item]
        told = None if error is None else f"{type(error).__name__}: {error}"
        found = self.gather((item, told))
        for rank, (_, message) in enumerate(found):
            if message is not None:
                self._fail(rank, message, error)
        return [one for one, _ in found]  # type: ignore[misc]

    def _fail(self, rank: int, message: str, own: Exception | None) -> None:
        if not self.is_first:
            if own is not None and not isinstance(own, AgentGymsError):
                _log.error("process %d of %d", self.rank, self.size, exc_info=own)
            raise ToldElsewhere(message) from own
        if rank == self.rank and own is not None:
            raise own
        raise TrainingError(f"process {rank} of {self.size} failed: {message}")

    def together(self, work: Callable[[], _T]) -> _T:
        """Return what comes of something that every process does for itself, without exchanges.

        Raises:
            TrainingError: It failed in a process; as for `agree`.
            ToldElsewhere: Likewise.
        """
        item, error = None, None
        try:
            item = work()
        except Exception as e:
            error = e
        self.agree(None, error)
        return item  # type: ignore[return-value]

    def of_first(self, work: Callable[[], _T]) -> _T:
        """Let the first process do something while the others wait, and return what comes of it.

        Raises:
            ToldElsewhere: In the others, if it fails in the first.
        """
        if self.size == 1:
            return work()
        item, error = None, None
        if self.is_first:
            try:
                item = work()
            except Exception as e:
                error = e
        return self.agree(item, error)[0]


ALONE: Final = Ranks()
"""One process."""


@contextlib.contextmanager
def joined() -> Iterator[Ranks]:
    """Join the processes that `torchrun` started, and leave them at the end.

    Those after the first are mute, but for errors.

    Raises:
        ConfigError: The variables that `torchrun` sets are not whole.
        TrainingError: Another process ended, or does not answer.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield ALONE
        return
    from torch import distributed

    ranks = _join()
    quiet = contextlib.nullcontext() if ranks.is_first else _mute()
    try:
        with quiet:
            yield ranks
    except ToldElsewhere:
        time.sleep(_COURTESY_S)
        raise SystemExit(2) from None
    except TrainingStopped as e:
        time.sleep(_SETTLING_S)
        if ranks.is_first:
            raise
        raise SystemExit(e.exit_code) from None
    except RuntimeError as e:
        if isinstance(e, HarnessError) or not _is_lost(e):
            raise
        raise TrainingError(
            f"process {ranks.rank} of {ranks.size} lost the others, one of which has ended or does "
            f"not answer; its own message says why ({str(e).strip().splitlines()[0]:.200})"
        ) from e
    finally:
        # Not after an error: the others may be in the middle of an exchange. vLLM's engine has
        # done so at its end.
        if sys.exc_info()[0] is None and distributed.is_initialized():
            time.sleep(_SETTLING_S)
            distributed.destroy_process_group()


def _join() -> Ranks:
    import torch
    from torch import distributed

    try:
        rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        local = int(os.environ["LOCAL_RANK"])
    except (KeyError, ValueError) as e:
        raise ConfigError(
            f"WORLD_SIZE is {os.environ['WORLD_SIZE']} but {e}: start several processes with "
            "torchrun --nproc-per-node N -m harness train ..."
        ) from None
    if not torch.cuda.is_available():
        distributed.init_process_group("gloo", timeout=TIMEOUT)
        return Ranks(rank, size)
    torch.cuda.set_device(local)
    distributed.init_process_group("cpu:gloo,cuda:nccl", timeout=TIMEOUT)  # objects take the first
    return Ranks(rank, size, f"cuda:{local}")


def _is_lost(error: RuntimeError) -> bool:
    from torch import distributed

    text = str(error).lower()
    return isinstance(error, distributed.DistError) or any(part in text for part in _LOST)


@contextlib.contextmanager
def _mute() -> Iterator[None]:
    with (
        Path(os.devnull).open("w", encoding="utf-8") as nowhere,
        contextlib.redirect_stdout(nowhere),
    ):
        yield
