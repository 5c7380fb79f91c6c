"""Enumerates the fault points of code that writes files: each system call fails or is killed once.

A fault point is a system call that changes a file below a folder: write, fsync, rename, mkdir,
unlink and so on, called from Python or from a library in C. The code runs in a forked child;
seccomp reports each such call to this process before the kernel executes it (Linux 5.9, x86_64 or
aarch64, without privileges), and this process lets it happen, fails it or kills the child. So

    def prepare():                      # in this process, before each run: the state to begin with
        shutil.rmtree(folder)
        save(folder, old)

    def check(run):                     # in this process, after each run: nothing is lost
        assert load(folder) in (old, new)

    num_points = enumerate_faults(
        lambda: save(folder, new),      # in the child; a library with threads needs one thread only
        folder, prepare=prepare, check=check,
    )

runs `save` once for every fault at every point. `points(act, folder)` lists the points without a
fault, `run_with_fault` tries one, `every=7` takes every seventh. Writes through mmap are not seen.

A fault is one of:

    kill    the child and its processes get SIGKILL in place of the call
    torn    half of a write is written, then they get SIGKILL
    EIO     the call fails, once
    ENOSPC  the call fails, once
    full    the call and all later ones that need space fail with ENOSPC, as on a full disk
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import itertools
import json
import os
import platform
import posix
import select
import signal
import socket
import struct
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

Fault = Literal["kill", "torn", "EIO", "ENOSPC", "full"]
FAULTS: tuple[Fault, ...] = ("kill", "torn", "EIO", "full")


class Call(NamedTuple):
    """A system call: its numbers, and where its arguments name files."""

    x86_64: int | None
    aarch64: int | None
    files: tuple[tuple[int | None, int | None], ...]
    """Pairs of argument positions: of a file descriptor and of a path relative to it, or None."""
    flags: int | None = None
    """Position of the flags of an opening."""


_FD, _PATH, _AT = ((0, None),), ((None, 0),), ((0, 1),)
CALLS = {
    "write": Call(1, 64, _FD), "pwrite64": Call(18, 68, _FD), "writev": Call(20, 66, _FD),
    "pwritev": Call(296, 70, _FD), "pwritev2": Call(328, 287, _FD),
    "sendfile": Call(40, 71, _FD), "copy_file_range": Call(326, 285, ((2, None),)),
    "splice": Call(275, 76, ((2, None),)), "fsync": Call(74, 82, _FD),
    "fdatasync": Call(75, 83, _FD), "sync_file_range": Call(277, 84, _FD),
    "ftruncate": Call(77, 46, _FD), "fallocate": Call(285, 47, _FD),
    "truncate": Call(76, 45, _PATH), "fchmod": Call(91, 52, _FD), "chmod": Call(90, None, _PATH),
    "fchmodat": Call(268, 53, _AT), "utimensat": Call(280, 88, _AT),
    "open": Call(2, None, _PATH, flags=1), "openat": Call(257, 56, _AT, flags=2),
    "creat": Call(85, None, _PATH),
    "mkdir": Call(83, None, _PATH), "mkdirat": Call(258, 34, _AT),
    "rmdir": Call(84, None, _PATH), "unlink": Call(87, None, _PATH),
    "unlinkat": Call(263, 35, _AT), "rename": Call(82, None, ((None, 0), (None, 1))),
    "renameat": Call(264, 38, ((0, 1), (2, 3))), "renameat2": Call(316, 276, ((0, 1), (2, 3))),
    "link": Call(86, None, ((None, 1),)), "linkat": Call(265, 37, ((2, 3),)),
    "symlink": Call(88, None, ((None, 1),)), "symlinkat": Call(266, 36, ((1, 2),)),
}  # fmt: skip
WRITES = ("write", "pwrite64", "writev", "pwritev")
NEED_NO_SPACE = ("unlink", "unlinkat", "rmdir", "rename", "renameat", "renameat2", "chmod",
                 "fchmod", "fchmodat", "utimensat")  # fmt: skip

_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_LOAD, _EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
_ALLOW, _NOTIFY = 0x7FFF0000, 0x7FC00000
_RECEIVE, _SEND, _CONTINUE = 0xC0502100, 0xC0182101, 1
_NOTIFICATION = struct.Struct("=QIIiIQ6Q")
_OPENS_TO_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_AT_FDCWD = -100


class Point(NamedTuple):
    """A fault point: the system call and the file, below the folder."""

    call: str
    file: str


class Run(NamedTuple):
    """What one run did.

    Attributes:
        points: The calls, in order, that the fault could have hit, up to the one it hit.
        hit: The call that the fault hit, or None if the run had fewer.
        outcome: "done", "raised", or "killed".
        error: Names of the exception's classes, most special first; empty if none was raised.
        trace: Its traceback.
    """

    points: list[Point]
    hit: Point | None
    outcome: Literal["done", "raised", "killed"]
    error: list[str]
    trace: str


def enumerate_faults(
    act: Callable[[], object],
    folder: Path,
    *,
    prepare: Callable[[], object],
    check: Callable[[Run], object],
    faults: tuple[Fault, ...] = FAULTS,
    every: int = 1,
) -> int:
    """Run `act` once for each fault at each point; return the number of runs with a fault."""
    tried = 0
    for fault in faults:
        # where points are skipped, each fault skips others
        for number in itertools.count(tried % every, every):
            prepare()
            run = run_with_fault(act, folder, fault, number)
            if run.hit is None:
                assert run.outcome == "done", f"without a fault it failed:\n{run.trace}"
                break
            tried += 1
            try:
                check(run)
            except BaseException as e:
                e.add_note(f"after {fault} at point {number}, {run.hit}\n{run.trace}")
                raise
    return tried


def points(act: Callable[[], object], folder: Path) -> list[Point]:
    """Run `act` in a child without a fault; return its fault points."""
    run = run_with_fault(act, folder, "kill", sys.maxsize)
    assert run.outcome == "done", run.trace
    return run.points


def run_with_fault(
    act: Callable[[], object], folder: Path, fault: Fault, number: int, *, limit_s: float = 120
) -> Run:
    """Run `act` in a forked child; its call `number`, from 0, meets the fault."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # about threads of this process
            child = os.fork()
        if child == 0:
            os.fsync = posix.fsync  # which tests otherwise do without: see conftest.py
            _run_child(act, theirs)
        theirs.close()
        try:
            _, received, _, _ = socket.recv_fds(ours, 1, 1)
            if not received:
                raise OSError("seccomp cannot report system calls here: needs Linux 5.9")
            supervisor = _Supervisor(received[0], child, os.path.realpath(folder), fault, number)
            supervisor.watch(time.monotonic() + limit_s)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
        text = b"".join(iter(lambda: ours.recv(1 << 16), b""))
    error, trace = json.loads(text) if text else ([], "")
    outcome = "raised" if error else "done" if text else "killed"
    return Run(supervisor.points, supervisor.hit, outcome, error, trace)


def _run_child(act: Callable[[], object], report: socket.socket) -> None:
    """Run `act` under the filter, report how it ended and exit."""
    error, trace = [], ""
    try:
        os.setpgid(0, 0)
        listener = _install_filter()
        socket.send_fds(report, [b"."], [listener])
        os.close(listener)
        act()
    except BaseException as e:
        error, trace = [kind.__name__ for kind in type(e).__mro__], traceback.format_exc()
    with suppress(BaseException):
        report.sendall(json.dumps((error, trace)).encode())
    os._exit(0)


def _install_filter() -> int:
    """Have the kernel report this process's calls; return the descriptor that receives them."""
    machine = platform.machine()
    lines = b"".join(struct.pack("HBBI", *line) for line in _program(machine))
    buffer = ctypes.create_string_buffer(lines, len(lines))
    program = struct.pack("HxxxxxxP", len(lines) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    listener = libc.syscall(_SECCOMP[machine], 1, 8, program)  # SET_MODE_FILTER, NEW_LISTENER
    if listener < 0:
        raise OSError(ctypes.get_errno(), "seccomp cannot report system calls")
    return listener


def _program(machine: str) -> Iterator[tuple[int, int, int, int]]:
    """Yield the instructions of the filter, in classic BPF."""
    allow, notify = (_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _NOTIFY)
    yield from [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, _ARCH[machine]), allow, (_LOAD, 0, 0, 0)]
    for call in CALLS.values():
        number = getattr(call, machine)
        if number is not None and call.flags is not None:
            yield from [(_EQUAL, 0, 4, number), (_LOAD, 0, 0, 16 + 8 * call.flags)]
            yield from [(_ANY_BIT, 0, 1, _OPENS_TO_WRITE), notify, allow]
        elif number is not None:
            yield from [(_EQUAL, 0, 1, number), notify]
    yield allow


class _Supervisor:
    """Receives the calls of a child and its processes, and decides about each."""

    def __init__(self, listener: int, child: int, folder: str, fault: Fault, number: int) -> None:
        self.points: list[Point] = []
        self.hit: Point | None = None
        self._listener, self._child, self._folder = listener, child, folder
        self._fault, self._number = fault, number
        machine = platform.machine()
        self._names = {getattr(call, machine): name for name, call in CALLS.items()}

    def watch(self, deadline: float) -> None:
        """Decide about calls until the child has ended."""
        ended = os.pidfd_open(self._child)
        poll = select.poll()
        poll.register(self._listener, select.POLLIN)
        poll.register(ended, select.POLLIN)
        try:
            while True:
                ready = poll.poll(max(deadline - time.monotonic(), 0) * 1000)
                if not ready:
                    raise TimeoutError(f"the child does not end after {self.hit}")
                if ended in (descriptor for descriptor, _ in ready):
                    return
                self._answer_next()
        finally:
            os.close(ended)
            os.close(self._listener)

    def _answer_next(self) -> None:
        buffer = bytearray(_NOTIFICATION.size)
        try:
            fcntl.ioctl(self._listener, _RECEIVE, buffer, True)
            request, thread, _, number, _, _, *arguments = _NOTIFICATION.unpack(buffer)
            error = self._decide(self._names[number], thread, arguments)
            answer = struct.pack("=QqiI", request, 0, -error, 0 if error else _CONTINUE)
            fcntl.ioctl(self._listener, _SEND, answer)
        except OSError as e:
            if e.errno not in (errno.ENOENT, errno.EINTR):  # the caller has ended
                raise

    def _decide(self, name: str, thread: int, arguments: list[int]) -> int:
        """Return the error that the call gets, or 0; kill the child if that is the fault."""
        file = self._changed_file(CALLS[name], thread, arguments)
        if file is None or not _can_meet(self._fault, name):
            return 0
        if self.hit is None:
            self.points.append(Point(name, file))
            if len(self.points) - 1 != self._number:
                return 0
            self.hit = self.points[-1]
        elif self._fault != "full":
            return 0
        if self._fault == "torn":
            _write_half(name, thread, arguments)
        if self._fault in ("kill", "torn"):
            os.killpg(self._child, signal.SIGKILL)
        return errno.EIO if self._fault == "EIO" else errno.ENOSPC

    def _changed_file(self, call: Call, thread: int, arguments: list[int]) -> str | None:
        """Return the last file that the call names, relative to the folder; None if outside."""
        for descriptor, path in reversed(call.files):
            file = _file_name(
                thread,
                None if descriptor is None else ctypes.c_int(arguments[descriptor]).value,
                None if path is None else arguments[path],
            )
            if file == self._folder or file.startswith(f"{self._folder}/"):
                return os.path.relpath(file, self._folder)
        return None


def _can_meet(fault: Fault, name: str) -> bool:
    if fault == "torn":
        return name in WRITES
    return fault != "full" or name not in NEED_NO_SPACE


def _file_name(thread: int, descriptor: int | None, path: int | None) -> str:
    """Return the file of a descriptor, or of the address of a path relative to a descriptor."""
    text = "" if path in (None, 0) else _memory(thread, path or 0, 4096).split(b"\0")[0].decode()
    if text.startswith("/"):
        base = "/"
    elif descriptor in (None, _AT_FDCWD):
        base = f"/proc/{thread}/cwd"
    else:
        base = f"/proc/{thread}/fd/{descriptor}"
    place = str(Path(base).readlink()) if base != "/" else base
    if not text:
        return place
    folder, name = os.path.split(os.path.join(place, text))  # noqa: PTH118
    return os.path.join(os.path.realpath(folder), name)  # noqa: PTH118


def _memory(thread: int, address: int, size: int) -> bytes:
    """Return the bytes at an address of another process, fewer where its memory ends."""
    with open(f"/proc/{thread}/mem", "rb", buffering=0) as memory:  # noqa: PTH123
        while size > 1:
            with suppress(OSError):
                return os.pread(memory.fileno(), size, address)
            size //= 2
    return b""


def _write_half(name: str, thread: int, arguments: list[int]) -> None:
    """Write the first half of what a call would write."""
    pieces = [(arguments[1], arguments[2])]
    if name.endswith("v"):
        vector = _memory(thread, arguments[1], 16 * arguments[2])
        pieces = list(struct.iter_unpack("=QQ", vector))
    data = b"".join(_memory(thread, *piece) for piece in pieces)
    information = Path(f"/proc/{thread}/fdinfo/{arguments[0]}").read_text().split()
    offset, flags = int(information[1]), int(information[3], 8)
    with Path(f"/proc/{thread}/fd/{arguments[0]}").open("r+b", buffering=0) as file:
        if name.startswith("p"):
            offset = arguments[3]
        elif flags & os.O_APPEND:
            offset = os.fstat(file.fileno()).st_size
        os.pwrite(file.fileno(), data[: len(data) // 2], offset)
