"""A seccomp filter of system calls, which complements Landlock or replaces it.

It refuses new processes, threads and programs, sockets, access to other processes, writing to files
and most questions about files. A process also must not end itself by SIGKILL, which the parent
treats as a loss from outside, nor change its own limits.
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
_REFUSED: Final[dict[str, tuple[int | None, int | None]]] = {
    # processes and programs; threads too, which no limit would count (for root, none does)
    "fork": (57, None), "vfork": (58, None), "clone": (56, 220),
    "execve": (59, 221), "execveat": (322, 281),
    "unshare": (272, 97), "setns": (308, 268), "personality": (135, 92),
    # sockets and other ways between processes
    "socket": (41, 198), "socketpair": (53, 199), "connect": (42, 203), "bind": (49, 200),
    "listen": (50, 201), "accept": (43, 202), "accept4": (288, 242),
    "sendmsg": (46, 211), "sendmmsg": (307, 269), "recvmsg": (47, 212), "recvmmsg": (299, 243),
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "msgget": (68, 186),
    "shmdt": (67, 197), "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187),
    "semget": (64, 190), "semop": (65, 193), "semctl": (66, 191), "semtimedop": (220, 192),
    "getsockopt": (55, 209), "setsockopt": (54, 208), "flock": (73, 32),
    "mq_open": (240, 180), "mq_unlink": (241, 181), "mq_notify": (244, 184),
    "memfd_create": (319, 279), "memfd_secret": (447, 447),
    # these report what other processes do with files
    "inotify_init": (253, None), "inotify_init1": (294, 26), "inotify_add_watch": (254, 27),
    # other processes
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "process_mrelease": (448, 448), "kcmp": (312, 272),
    "kill": (62, 129), "tkill": (200, 130), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "pidfd_open": (434, 434), "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424), "timer_create": (222, 107), "move_pages": (279, 239),
    "migrate_pages": (256, 238), "setpriority": (141, 140), "ioprio_set": (251, 30),
    "sched_setaffinity": (203, 122), "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118), "sched_setattr": (314, 274),
    "setrlimit": (160, 164), "setpgid": (109, 154), "setsid": (112, 157),
    # the kernel
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "io_setup": (206, 0), "io_submit": (209, 2), "keyctl": (250, 219), "add_key": (248, 217),
    "request_key": (249, 218), "modify_ldt": (154, None), "iopl": (172, None),
    "ioperm": (173, None), "syslog": (103, 116), "acct": (163, 89), "reboot": (169, 142),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105),
    "finit_module": (313, 273), "delete_module": (176, 106), "swapon": (167, 224),
    "swapoff": (168, 225), "quotactl": (179, 60), "quotactl_fd": (443, 443),
    "sethostname": (170, 161), "setdomainname": (171, 162), "settimeofday": (164, 170),
    "clock_settime": (227, 112), "clock_adjtime": (305, 266), "adjtimex": (159, 171),
    "sync": (162, 81), "syncfs": (306, 267), "seccomp": (317, 277), "lsm_set_self_attr": (460, 460),
    "fanotify_init": (300, 262), "vhangup": (153, 58), "capset": (126, 91),
    # users
    "setuid": (105, 146), "setgid": (106, 144), "setreuid": (113, 145), "setregid": (114, 143),
    "setresuid": (117, 147), "setresgid": (119, 149), "setgroups": (116, 159),
    # files
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53),
    "fchmodat2": (452, 452), "chown": (92, None), "fchown": (93, 55), "lchown": (94, None),
    "fchownat": (260, 54), "utime": (132, None), "utimes": (235, None), "utimensat": (280, 88),
    "futimesat": (261, None), "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "mkdir": (83, None), "mkdirat": (258, 34), "rmdir": (84, None), "unlink": (87, None),
    "unlinkat": (263, 35), "rename": (82, None), "renameat": (264, 38), "renameat2": (316, 276),
    "link": (86, None), "linkat": (265, 37), "symlink": (88, None), "symlinkat": (266, 36),
    "mknod": (133, None), "mknodat": (259, 33), "creat": (85, None), "truncate": (76, 45),
    "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264),
    # what files outside are; `stat` is left, because imports need it
    "readlink": (89, None), "readlinkat": (267, 78), "access": (21, None),
    "faccessat": (269, 48), "faccessat2": (439, 439), "statfs": (137, 43), "fstatfs": (138, 44),
    "chdir": (80, 49), "fchdir": (81, 50), "getxattr": (191, 8), "lgetxattr": (192, 9),
    "fgetxattr": (193, 10), "listxattr": (194, 11), "llistxattr": (195, 12),
    "flistxattr": (196, 13),
}  # fmt: skip
# Reported as unknown, so that the C library uses the older call, whose arguments can be checked.
_UNKNOWN: Final = {"clone3": (435, 435), "openat2": (437, 437)}
_OPEN, _OPENAT, _FCNTL, _IOCTL = (2, None), (257, 56), (72, 25), (16, 29)
_PRCTL, _PRLIMIT, _TGKILL = (157, 167), (302, 261), (234, 131)
_FIRST_UNKNOWN: Final = 463  # calls newer than this table

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
    """Return the filter of a process as instructions of classic BPF.

    The process `pid` may abort itself, and cannot signal others. `machine` is `x86_64` or
    `aarch64`.
    """
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
        *((numbers, _REFUSE) for numbers in _REFUSED.values()),
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
    return [*lines, allow]


def _argument(index: int) -> _Instruction:
    """Load the lower half of an argument: both machines are little-endian."""
    return (_LOAD, 0, 0, 16 + 8 * index)


def _each(values: tuple[int, ...], action: _Instruction) -> list[_Instruction]:
    return [line for value in values for line in ((_EQUAL, 0, 1, value), action)]
