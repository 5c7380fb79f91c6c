"""A seccomp filter of system calls, which complements Landlock or replaces it.

It allows what Python needs to compute and to talk over the connection that it has; all other calls
are refused, so a call that the kernel gets tomorrow is too. There are no new processes, threads and
programs, no sockets, no access to other processes, no writing to files and few questions about
them. A process also must not end itself by SIGKILL, which the parent treats as a loss from outside,
nor change its own limits.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import signal
import sys
from typing import Final

# Numbers on x86_64 and on aarch64; None if the machine has no such call.
_ALLOWED: Final[dict[str, tuple[int | None, int | None]]] = {
    # the open files: the connection, pipes of the code's own, and what may be read
    "read": (0, 63), "write": (1, 64), "readv": (19, 65), "writev": (20, 66),
    "pread64": (17, 67), "pwrite64": (18, 68), "lseek": (8, 62), "close": (3, 57),
    "close_range": (436, 436), "dup": (32, 23), "dup2": (33, None), "dup3": (292, 24),
    "pipe": (22, None), "pipe2": (293, 59), "recvfrom": (45, 207), "sendto": (44, 206),
    "poll": (7, None), "ppoll": (271, 73), "select": (23, None), "pselect6": (270, 72),
    "epoll_create1": (291, 20), "epoll_ctl": (233, 21), "epoll_wait": (232, None),
    "epoll_pwait": (281, 22),
    # what files are, because imports need it
    "stat": (4, None), "fstat": (5, 80), "lstat": (6, None), "newfstatat": (262, 79),
    "statx": (332, 291), "getdents64": (217, 61), "getcwd": (79, 17),
    # memory
    "mmap": (9, 222), "mprotect": (10, 226), "munmap": (11, 215), "brk": (12, 214),
    "mremap": (25, 216), "msync": (26, 227), "madvise": (28, 233), "membarrier": (324, 283),
    # signals to itself, and alarms
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139),
    "rt_sigpending": (127, 136), "rt_sigsuspend": (130, 133), "rt_sigtimedwait": (128, 137),
    "sigaltstack": (131, 132), "pause": (34, None), "alarm": (37, None),
    "getitimer": (36, 102), "setitimer": (38, 103), "restart_syscall": (219, 128),
    # time
    "nanosleep": (35, 101), "clock_nanosleep": (230, 115), "clock_gettime": (228, 113),
    "clock_getres": (229, 114), "gettimeofday": (96, 169), "time": (201, None),
    "times": (100, 153),
    # its one thread, and its end
    "futex": (202, 98), "set_robust_list": (273, 99), "rseq": (334, 293),
    "set_tid_address": (218, 96), "arch_prctl": (158, None), "sched_yield": (24, 124),
    "getcpu": (309, 168), "exit": (60, 93), "exit_group": (231, 94), "wait4": (61, 260),
    # what the process is
    "getpid": (39, 172), "gettid": (186, 178), "getppid": (110, 173), "getpgid": (121, 155),
    "getpgrp": (111, None), "getsid": (124, 156), "getuid": (102, 174), "geteuid": (107, 175),
    "getgid": (104, 176), "getegid": (108, 177), "getresuid": (118, 148),
    "getresgid": (120, 150), "getgroups": (115, 158), "getrlimit": (97, 163),
    "getrusage": (98, 165), "getpriority": (140, 141), "sched_getaffinity": (204, 123),
    "uname": (63, 160), "sysinfo": (99, 179), "umask": (95, 166), "getrandom": (318, 278),
}  # fmt: skip
# Reported as unknown, so that the C library uses the older call, whose arguments can be checked.
_UNKNOWN: Final = {"clone3": (435, 435), "openat2": (437, 437)}
_OPEN, _OPENAT, _FCNTL, _IOCTL = (2, None), (257, 56), (72, 25), (16, 29)
_PRCTL, _PRLIMIT, _TGKILL = (157, 167), (302, 261), (234, 131)
_FIRST_UNKNOWN: Final = 463  # what is newer is reported as unknown, as an older kernel does

_AUDIT_ARCH: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32: Final = 0x40000000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW: Final = 0x7FFF0000
_KILL: Final = 0x80000000
_REFUSE: Final = 0x00050000 | errno.EPERM
_REPORT_UNKNOWN: Final = 0x00050000 | errno.ENOSYS
# The flags that open a file for writing, create one, or (O_PATH) open what may not be read.
_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | 0x200000
# F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE, F_NOTIFY: signals sent through a file. F_SETLK,
# F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW and F_SETPIPE_SZ: locks and memory shared with others.
_FILE_CONTROL: Final = (8, 10, 15, 1024, 1026, 6, 7, 37, 38, 1031)
# TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX, which Python itself uses. The others
# include FIOSETOWN, which is like F_SETOWN, and file systems' own ways to change a file.
_DEVICE_CONTROL: Final = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
# PR_SET_NAME, PR_GET_NAME and PR_SET_VMA, which the C library uses to name threads and memory.
_NAMING: Final = (15, 16, 0x53564D41)
_PR_SET_SECCOMP: Final = 22

_Instruction = tuple[int, int, int, int]


class _Filter(ctypes.Structure):
    _fields_ = [
        ("code", ctypes.c_uint16),
        ("jt", ctypes.c_uint8),
        ("jf", ctypes.c_uint8),
        ("k", ctypes.c_uint32),
    ]


class _Program(ctypes.Structure):
    _fields_ = [("len", ctypes.c_uint16), ("filter", ctypes.POINTER(_Filter))]


def restrict(*, opens: bool) -> bool:
    """Apply the filter to this single-threaded process, permanently; needs `no_new_privs`.

    If `opens`, files may be opened for reading. Returns whether the filter is in force, which
    needs Linux on x86_64 or aarch64.
    """
    machine = platform.machine()
    if sys.platform != "linux" or machine not in _AUDIT_ARCH:
        return False
    instructions = program(machine, os.getpid(), opens=opens)
    filters = (_Filter * len(instructions))(*(_Filter(*one) for one in instructions))
    loaded = _Program(len(instructions), filters)
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    return bool(prctl(_PR_SET_SECCOMP, 2, ctypes.byref(loaded), 0, 0) == 0)


def program(machine: str, pid: int, *, opens: bool = True) -> list[_Instruction]:
    """Return classic BPF for `x86_64` or `aarch64`; `pid` may abort itself, not signal others."""
    column = 0 if machine == "x86_64" else 1
    lines: list[_Instruction] = [
        (_LOAD, 0, 0, 4),  # `seccomp_data`: call number at 0, architecture at 4, arguments from 16
        (_EQUAL, 1, 0, _AUDIT_ARCH[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),
    ]
    if column == 0:  # the x32 calls have the same architecture, but other numbers
        lines += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _KILL)]
    lines += [(_AT_LEAST, 0, 1, _FIRST_UNKNOWN), (_RETURN, 0, 0, _REPORT_UNKNOWN)]
    for numbers, action in [
        *((numbers, _ALLOW) for numbers in _ALLOWED.values()),
        *((numbers, _REPORT_UNKNOWN) for numbers in _UNKNOWN.values()),
    ]:
        if (number := numbers[column]) is not None:
            lines += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, action)]
    refuse, allow = (_RETURN, 0, 0, _REFUSE), (_RETURN, 0, 0, _ALLOW)
    reading = [] if opens else [refuse]
    abort = [_argument(2), (_EQUAL, 1, 0, signal.SIGABRT), refuse, allow]
    for numbers, body in [
        (_OPEN, [*reading, _argument(1), (_ANY_BIT, 0, 1, _WRITING), refuse, allow]),
        (_OPENAT, [*reading, _argument(2), (_ANY_BIT, 0, 1, _WRITING), refuse, allow]),
        (_FCNTL, [_argument(1), *_each(_FILE_CONTROL, refuse), allow]),
        (_IOCTL, [_argument(1), *_each(_DEVICE_CONTROL, allow), refuse]),
        (_PRCTL, [_argument(0), *_each(_NAMING, allow), refuse]),
        # Limits may be read, but not set.
        (_PRLIMIT, [_argument(2), (_EQUAL, 1, 0, 0), refuse, allow]),
        (_TGKILL, [_argument(0), (_EQUAL, 1, 0, pid), refuse, *abort]),
    ]:
        if (number := numbers[column]) is not None:
            lines += [(_EQUAL, 0, len(body), number), *body]
    return [*lines, refuse]


def _argument(index: int) -> _Instruction:
    """Load the lower half of an argument: both machines are little-endian."""
    return (_LOAD, 0, 0, 16 + 8 * index)


def _each(values: tuple[int, ...], action: _Instruction) -> list[_Instruction]:
    return [line for value in values for line in ((_EQUAL, 0, 1, value), action)]
