"""Standard streams that do not end a command when they fail: closed, full, or without a reader."""

from __future__ import annotations

import io
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any


class _Stream(io.RawIOBase):
    """An open descriptor; what it does not take is lost, and `error` says why."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self.error: OSError | None = None

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        left = memoryview(content)
        while left:
            try:
                left = left[os.write(self._descriptor, left) :]
            except BlockingIOError:  # another program made the terminal so
                select.select([], [self._descriptor], [])
            except OSError as e:
                self.error = self.error or e
                break
        return len(content)


class Streams:
    """The standard output and error of a command."""

    def __init__(self) -> None:
        self._output: _Stream | None = None

    @property
    def error(self) -> OSError | None:
        """Why the standard output is not whole; None if it is."""
        return None if self._output is None else self._output.error

    def wrap(self, stream: Any, descriptor: int) -> Any:
        """Return a stream that never raises; one that is not the process's own is left as it is."""
        try:
            if stream is None or stream.fileno() != descriptor:
                return stream
            with suppress(OSError):
                stream.flush()
        except (OSError, ValueError):
            return stream
        raw = _Stream(descriptor)
        if descriptor == 1:
            self._output = raw
        unbuffered: Any = raw  # a buffer would refuse what a signal handler says meanwhile
        return io.TextIOWrapper(unbuffered, stream.encoding, stream.errors, write_through=True)


@contextmanager
def guarded() -> Iterator[Streams]:
    """Keep failures of the standard streams away from a command; for a `with` block.

    Descriptors 0 to 2 that are closed become the null device, or the first file that a command
    opens would take their number, and messages would be written into it.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    streams, before = Streams(), (sys.stdout, sys.stderr)
    sys.stdout, sys.stderr = (
        streams.wrap(stream, number) for number, stream in enumerate(before, 1)
    )
    try:
        yield streams
    finally:
        sys.stdout, sys.stderr = before
