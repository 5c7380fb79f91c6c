"""Targets of the fuzzer: functions of bytes, each with its seeds and the errors that it may raise.

A target returns a plain value or raises one of its documented errors. Anything else is a crash, and
so is a result that differs when the same bytes come again, an input that takes too many steps or
seconds of CPU time, and one that takes too much memory.
"""

from __future__ import annotations

import functools
import importlib
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Final, Literal

MODULES: Final = (
    "targets_protocol",
    "targets_servers",
    "targets_environments",
    "targets_appworld",
    "targets_answers",
    "targets_models",
    "targets_records",
    "targets_runs",
    "targets_settings",
    "targets_data",
)
KEPT: Final = Path(__file__).parent / "seeds"
"""Inputs that once broke something: `seeds/TARGET/NAME`."""

STEPS: Final = 400_000
"""Calls of functions that any input may take; a target may allow more for each byte."""

CPU_S: Final = 20.0
"""Seconds of CPU time that any input may take: for loops that call nothing."""

MEMORY_BYTES: Final = 768 << 20
"""Memory that a process of the fuzzer may take beyond what it has after its seeds."""

Kind = Literal["json", "lines", "text", "bytes"]


class Broken(Exception):
    """A target's own check of its result failed."""


class TooLong(BaseException):
    """An input took too many steps or too much CPU time; no code of a target may catch it."""


@dataclass(frozen=True, slots=True)
class Target:
    """What is fuzzed.

    Attributes:
        name: Its name, that of the function.
        run: Takes bytes; returns a value whose `repr` is equal for equal bytes.
        errors: The documented errors.
        seeds: Returns valid inputs, made by the code under test.
        kind: How the blind mode changes inputs: a JSON value, JSON lines, text, or bytes.
        steps_per_byte: Calls of functions that each byte of an input may add to `STEPS`.
    """

    name: str
    run: Callable[[bytes], Any]
    errors: tuple[type[Exception], ...]
    seeds: Callable[[], Iterable[bytes]]
    kind: Kind
    steps_per_byte: int

    def all_seeds(self) -> list[bytes]:
        """Return the seeds, and the kept inputs that once broke the target."""
        kept = sorted((KEPT / self.name).glob("*")) if (KEPT / self.name).is_dir() else []
        return [*self.seeds(), *(file.read_bytes() for file in kept)]


TARGETS: Final[dict[str, Target]] = {}


def target(
    *errors: type[Exception],
    seeds: Callable[[], Iterable[bytes]],
    kind: Kind = "json",
    steps_per_byte: int = 2_000,
) -> Callable[[Callable[[bytes], Any]], Callable[[bytes], Any]]:
    """Return a decorator that makes a function a target; see `Target`."""

    def add(run: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
        name = run.__name__
        assert name not in TARGETS
        TARGETS[name] = Target(name, run, errors, functools.cache(seeds), kind, steps_per_byte)
        return run

    return add


def load() -> dict[str, Target]:
    """Return all targets by name."""
    for module in MODULES:
        importlib.import_module(module)
    return TARGETS


def check(wanted: Target, data: bytes, *, counting: bool = True, twice: bool = True) -> None:
    """Run a target on an input, twice, and raise whatever is not documented.

    Args:
        wanted: The target.
        data: The input.
        counting: Count the calls of functions; it makes them some times slower.
        twice: Run it again and compare.

    Raises:
        BaseException: What the target raised, `Broken` or `TooLong`.
    """
    steps = STEPS + wanted.steps_per_byte * len(data)
    with _limited(steps if counting else 0):
        first = _result(wanted, data)
        if twice and first != (again := _result(wanted, data)):
            raise Broken(f"the same input gave {first:.300} and then {again:.300}")


def _result(wanted: Target, data: bytes) -> str:
    try:
        return repr(wanted.run(data))
    except wanted.errors as error:
        return f"{type(error).__name__}: {error}"


@contextmanager
def _limited(steps: int) -> Iterator[None]:
    """Raise `TooLong` after `steps` calls of functions, unless 0, or `CPU_S` of CPU time."""
    left = steps

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            sys.setprofile(None)
            raise TooLong(f"more than {steps:,} calls of functions")

    def late(number: int, frame: FrameType | None) -> None:
        raise TooLong(f"more than {CPU_S:g} s of CPU time")

    before = signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, CPU_S)
    try:
        if steps:
            sys.setprofile(count)
        yield
    finally:
        sys.setprofile(None)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def limit_memory() -> None:
    """Let this process take `MEMORY_BYTES` more than it has; beyond that is a `MemoryError`."""
    fields = Path("/proc/self/statm").read_text(encoding="ascii").split()
    data_bytes = int(fields[5]) * resource.getpagesize()
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    resource.setrlimit(resource.RLIMIT_DATA, (data_bytes + MEMORY_BYTES, hard))


def resident_bytes() -> int:
    """Return the memory of this process that is in use."""
    fields = Path("/proc/self/statm").read_text(encoding="ascii").split()
    return int(fields[1]) * resource.getpagesize()


@functools.cache
def scratch() -> Path:
    """Return this process's folder for files; it is removed at its end."""
    memory = Path("/dev/shm")
    folder = tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None)
    _keep.append(folder)
    return Path(folder.name)


_keep: Final[list[Any]] = []


def written(data: bytes, name: str) -> Path:
    """Return a file of this name that holds an input, with a time that does not change."""
    file = scratch() / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return file


def never_sleep() -> None:
    """Let `time.sleep` return at once: nothing that is fuzzed may wait."""

    def sleep(seconds: float) -> None:
        if not 0 <= seconds < 2**31:
            raise ValueError(f"slept for {seconds} s")

    time.sleep = sleep  # type: ignore[assignment]
