"""What code can do to its process and beyond: each forbidden thing is tried from inside."""

import json
import os
import re
import socket
import sys
import threading
from pathlib import Path

import pytest
from attacks import UNGUARDED
from kettle import BRIEF

from agentgyms.envs.appworld.sandbox import executors
from agentgyms.envs.appworld.sandbox.child import seccomp
from agentgyms.envs.appworld.sandbox.executors import WorkerDied, executor
from agentgyms.envs.appworld.world import ApiResponse

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Landlock and seccomp are Linux's")

LIBC = "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
REFUSED = r"PermissionError: \[Errno (1|13)\]"


def answer(*_):
    return ApiResponse(value=None)


def run(process, code, timeout_s=10.0):
    return process.run(UNGUARDED + code, answer, timeout_s=timeout_s, max_calls=5)


def test_what_is_in_force_is_told(process):
    assert process.confinement == executors.confinement()
    if process.confinement["missing"]:
        pytest.skip(f"this system lacks {process.confinement['missing']}")
    assert process.confinement["landlock"] >= 1
    assert process.confinement["seccomp"] is True


@pytest.mark.parametrize(
    "code",
    [
        "open('/tmp/new', 'w')",
        "open('/dev/shm/new', 'w')",
        "open('/etc/passwd')",
        "import os; os.open('/dev/null', os.O_RDWR)",
        "open('/proc/self/environ')",
        "import os; open(f'/proc/{os.getppid()}/environ')",
        "import os; open(f'/proc/{os.getppid()}/mem', 'rb')",
        "import os; open(f'/proc/{os.getppid()}/cmdline')",
        "import os; os.listdir('/')",
        f"open({str(Path(executors.__file__))!r})",
        f"import os; os.listdir({str(Path(executors.__file__).parent)!r})",
        "import os; os.mkdir('/tmp/new')",
        "import os; os.unlink('/tmp')",
        "import os; os.chmod('/tmp', 0o777)",
        "import os; os.utime('/tmp')",
        "import os; os.symlink('/etc', '/tmp/new')",
        "import os; os.truncate('/etc/hostname', 0)",
        "import os; os.fork()",
        "import os; os.execv('/bin/sh', ['sh'])",
        "import os; os.posix_spawn('/bin/sh', ['sh'], {})",
        "import subprocess; subprocess.run(['true'])",
        "import multiprocessing; multiprocessing.get_context('fork').Process(target=print).start()",
        "import os; os.kill(os.getppid(), 9)",
        "import os; os.kill(os.getpid(), 9)",
        "import os; os.kill(-1, 15)",
        "import signal; signal.raise_signal(signal.SIGKILL)",
        "import signal, threading; signal.pthread_kill(threading.get_ident(), 9)",
        "import signal, os; signal.pidfd_send_signal(os.pidfd_open(os.getppid()), 9)",
        "import socket; socket.socket()",
        "import socket; socket.socketpair()",
        "import socket; socket.create_connection(('127.0.0.1', 1))",
        "import os; os.nice(-5)",
        "import os; os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)",
        "import os; os.sched_setaffinity(os.getppid(), {0})",
        "import os; os.setuid(1)",
        "import os; os.memfd_create('x')",
        "import os; os.readlink('/proc/self/exe')",
        "import os; os.statvfs('/')",
        "import os; os.chdir('/tmp')",
        "import os; os.listxattr('/etc')",
        "import os; os.getxattr('/etc', 'user.x')",
        "import os; os.open('/etc', os.O_PATH)",
        "import os; os.chroot('/')",
        "import os; os.pipe(); import fcntl; fcntl.fcntl(4, fcntl.F_SETSIG, 9)",
    ],
)
def test_refused(shared, code):
    result = run(shared, code)
    assert re.match(REFUSED, result.error), result.output


@pytest.mark.parametrize(
    "call",
    [
        "ptrace(16, os.getppid(), 0, 0)",
        "ptrace(0, 0, 0, 0)",
        "process_vm_readv(os.getppid(), 0, 0, 0, 0, 0)",
        "unshare(0x10000000)",
        "mount(0, b'/tmp', 0, 0, 0)",
        "prctl(4, 1, 0, 0, 0)",
        "prctl(1, 0, 0, 0, 0)",
        "shmget(1, 4096, 0o1666)",
        "msgctl(1, 0, 0)",
        "semctl(1, 0, 0, 0)",
        "inotify_init1(0)",
        "sync() or libc.syncfs(1)",
        "flock(1, 2)",
        "getsockopt(3, 1, 77, 0, 0)",
        "syscall(457, 0, 0, 0, 0)",  # statmount, and below listmount: what is mounted
        "syscall(458, 0, 0, 0, 0)",
        "ioctl(1, 0x8901, 0)",
        "ioctl(1, 0x5452, 0)",
        "fcntl(1, 6, 0)",
        "fcntl(1, 1031, 4096)",
        "timer_create(0, 0, 0)",
        "access(b'/etc', 0)",
        "readlink(b'/proc/self/exe', ctypes.create_string_buffer(99), 99)",
        "syscall(321, 0, 0, 0)" if os.uname().machine == "x86_64" else "syscall(280, 0, 0, 0)",
    ],
)
def test_system_calls_refused(shared, call):
    result = run(shared, f"{LIBC}print(libc.{call}, ctypes.get_errno())")
    assert result.output in ("-1 1\n", "-1 38\n"), result.output


@pytest.mark.parametrize("kind", ["mini", pytest.param("appworld", marks=pytest.mark.appworld)])
def test_the_environment_holds_what_is_needed(kind, monkeypatch):
    monkeypatch.setenv("APPWORLD_CACHE", "/home/someone")
    leased = executor(kind)
    leased.begin(BRIEF)
    code = "import os\nprint(sorted(os.environ.items()))"
    assert json.loads(run(leased, code).output) == [["LANG", "C.UTF-8"], ["TZ", "UTC"]]
    leased.close()


def test_no_connection_out(process):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        result = run(process, f"import socket\nsocket.create_connection(('127.0.0.1', {port}))")
        assert re.match(REFUSED, result.error)
        listening.settimeout(0)
        with pytest.raises(BlockingIOError):
            listening.accept()


@pytest.mark.parametrize(
    ("code", "output"),
    [
        (
            "import _sqlite3 as s; print(s.connect(':memory:').execute('select 3').fetchone()[0])",
            "3",
        ),
        ("import xml.etree.ElementTree as E; print(E.fromstring('<a b=\"5\"/>').get('b'))", "5"),
        ("import lzma, bz2, zlib, hashlib; print(len(hashlib.sha256().digest()))", "32"),
        ("import zoneinfo; print(len(zoneinfo.ZoneInfo('UTC').key))", "3"),
        ("import os; print(len(os.urandom(6)), os.getpid() > 1)", "6 True"),
        ("import tomllib, html.parser, logging.config, email.message; print(7)", "7"),
        ("import resource; print(resource.getrlimit(resource.RLIMIT_CORE))", "[0, 0]"),
        ("import os; print(os.isatty(0), os.get_inheritable(0))", "False True"),
        pytest.param(
            "x = bytearray(300 << 20); print(len(x) >> 20)", "300", marks=pytest.mark.slow
        ),
    ],
)
def test_python_goes_on_working(shared, code, output):
    assert run(shared, code).output.split("\n")[0] == output


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("x = bytearray(2 << 30)", "MemoryError"),
        pytest.param(
            "x = []\nwhile True:\n    x.append(bytearray(1 << 24))",
            "MemoryError",
            marks=pytest.mark.slow,
        ),
        (
            "import threading as t\nt.stack_size(1 << 15)\nt.Thread(target=print).start()",
            "RuntimeError: can't start new thread",
        ),
        (
            "import os\nwhile True:\n    try:\n        os.fork()\n"
            "    except PermissionError: raise ValueError('no fork')",
            "ValueError: no fork",
        ),
        (
            "def down(n):\n    down(n + 1)\ndown(0)",
            "RecursionError: maximum recursion depth exceeded",
        ),
        ("import json; json.loads('[' * 10**6)", "RecursionError: maximum recursion depth"),
        ("d = {}\nfor _ in range(10**5): d = {'d': d}\napis.kettle.boil(d=d)", "RecursionError"),
        ("apis.kettle.boil(x='x' * (20 << 20))", "ValueError: a message of"),
    ],
)
def test_bombs_are_contained_and_the_process_goes_on(process, code, error):
    assert run(process, code).error.startswith(error)
    assert run(process, "print('still here')").output == "still here\n"


@pytest.mark.parametrize(
    "code",
    [
        "while True:\n    print('y' * 10**5)",
        pytest.param("x = 10**10**7", marks=pytest.mark.slow),
        pytest.param("while True: x = 'y' * 10**6", marks=pytest.mark.slow),
    ],
)
def test_what_takes_too_long_is_contained_and_the_process_goes_on(process, code):
    assert run(process, code, timeout_s=0.3).error.startswith("Exception: Execution timed out")
    assert run(process, "print('still here')").output == "still here\n"


@pytest.mark.parametrize(
    ("code", "signal", "exit_code", "why"),
    [
        ("import os; os.abort()", 6, None, "died of SIGABRT"),
        ("import os; os._exit(3)", None, 3, "exited with 3"),
        ("import os; os._exit(0)", None, 0, "exited with 0"),
        ("import ctypes; ctypes.string_at(1)", 11, None, "died of SIGSEGV"),
        (
            "import os, signal\nsignal.signal(14, 1)\nos.closerange(3, 64)\nwhile True: 1",
            None,
            None,
            "closed its connection",
        ),
        (
            "import signal\nsignal.signal(14, 0)\nwhile True: 1",
            14,
            None,
            "SIGALRM",
        ),
        (f"{LIBC}libc.syscall(0x40000000 + 39)", 31, None, "died of SIGSYS"),
    ],
)
def test_what_ends_the_process_is_told(process, code, signal, exit_code, why):
    if "0x4000" in code and os.uname().machine != "x86_64":
        pytest.skip("only x86_64 has a second table of system calls")
    with pytest.raises(WorkerDied, match=why) as died:
        run(process, code, timeout_s=0.5)
    assert (died.value.signal, died.value.exit_code, died.value.timed_out) == (
        signal,
        exit_code,
        False,
    )


def test_code_that_swallows_the_time_limit_is_killed(process, monkeypatch):
    monkeypatch.setattr(executors, "GRACE_S", 0.2)
    code = "import signal\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\nwhile True: x = 1"
    with pytest.raises(WorkerDied, match="did not respond in time") as died:
        run(process, code, timeout_s=0.2)
    assert died.value.timed_out
    assert not process.alive


def test_one_executor_cannot_see_another(process):
    other = executor("mini")
    other.begin(BRIEF)
    for name in ("environ", "mem", "maps", "fd", "root"):
        place = f"/proc/{other.pid}/{name}"
        code = f"import os\nos.listdir({place!r})" if name in ("fd", "root") else f"open({place!r})"
        assert re.match(REFUSED, run(process, code).error)
    other.close()


def test_bombs_leave_others_alone(process):
    other = executor("mini")
    other.begin(BRIEF)
    bomb = threading.Thread(
        target=lambda: run(process, "x = []\nwhile True: x.append(bytes(10**7))", timeout_s=1)
    )
    bomb.start()
    assert run(other, "print(sum(range(10)))", timeout_s=5).output == "45\n"
    bomb.join()
    other.close()


def system_calls():
    """Every number that the kernel's headers name, and all others up to a number nobody has."""
    headers = (
        "/usr/include/x86_64-linux-gnu/asm/unistd_64.h",
        "/usr/include/asm/unistd_64.h",
        "/usr/include/asm-generic/unistd.h",
    )
    named = {
        int(number)
        for header in map(Path, headers)
        if header.is_file()
        for number in re.findall(r"^#define __NR\w+\s+(\d+)$", header.read_text(), re.MULTILINE)
    }
    return sorted(named | set(range(600)))


ASKED = ("_OPEN", "_OPENAT", "_FCNTL", "_IOCTL", "_PRCTL", "_PRLIMIT", "_TGKILL")
"""Calls that are allowed with some arguments."""


UNFILTERED = {335, 336} if os.uname().machine == "x86_64" else set()
"""`uretprobe` and `uprobe`: Linux asks no filter, and ends whoever calls them with SIGILL."""


def let_through(machine):
    """The numbers of calls that are not always refused."""
    column = ("x86_64", "aarch64").index(machine)
    known = [*seccomp._ALLOWED.values(), *(getattr(seccomp, name) for name in ASKED)]
    return {numbers[column] for numbers in known} - {None}


def test_every_call_that_is_not_allowed_is_refused(process):
    """By the kernel, of a process in the sandbox."""
    left_out = let_through(os.uname().machine) | UNFILTERED
    refused = [n for n in system_calls() if n not in left_out]
    code = f"""{LIBC}
passed = []
for number in {refused}:
    ctypes.set_errno(0)
    if libc.syscall(number, -1, -1, -1, -1, -1, -1) != -1 or ctypes.get_errno() not in (1, 38):
        passed.append((number, ctypes.get_errno()))
print(passed, len({refused}))"""
    assert run(process, code).output == f"[] {len(refused)}\n"
    assert len(refused) > 400


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_refuses_what_it_does_not_name_on_both_machines(machine):
    column = ("x86_64", "aarch64").index(machine)
    arch = seccomp._AUDIT_ARCH[machine]

    def judge(number, *arguments, arch=arch):
        return verdict(seccomp.program(machine, pid=77), number, arch, arguments)

    refused, allowed, unknown, killed = 0x50001, 0x7FFF0000, 0x50026, 0x80000000
    for number in system_calls():
        if number not in let_through(machine):
            assert judge(number) == (unknown if number in (435, 437) or number > 462 else refused)
    for numbers in seccomp._ALLOWED.values():
        if numbers[column] is not None:
            assert judge(numbers[column]) == allowed
    read = (0, 63)[column]
    assert judge(read) == allowed
    assert judge(read, arch=1) == killed
    assert judge(435) == judge(500) == unknown
    fcntl, ioctl, tgkill = (72, 25)[column], (16, 29)[column], (234, 131)[column]
    assert judge(fcntl, 3, 1) == judge(ioctl, 3, 0x5401) == allowed
    assert judge(fcntl, 3, 8) == judge(ioctl, 3, 0x8901) == judge(ioctl, 3, 0x6602) == refused
    assert judge(tgkill, 77, 77, 6) == allowed
    assert judge(tgkill, 78, 78, 6) == judge(tgkill, 77, 77, 9) == refused
    openat = (257, 56)[column]
    assert judge(openat, 0, 0, os.O_RDONLY | os.O_CLOEXEC) == allowed
    assert judge(openat, 0, 0, os.O_WRONLY) == judge(openat, 0, 0, os.O_CREAT) == refused
    closed = seccomp.program(machine, pid=77, opens=False)
    assert verdict(closed, openat, arch, (0, 0, os.O_RDONLY)) == refused
    assert verdict(closed, read, arch, ()) == allowed
    prlimit = (302, 261)[column]
    assert judge(prlimit, 0, 7, 0) == allowed
    assert judge(prlimit, 0, 7, 1 << 12) == refused


def verdict(program, number, arch, arguments):
    """Run a filter as the kernel does."""
    words = {0: number, 4: arch} | {16 + 8 * i: word for i, word in enumerate(arguments)}
    at, held = 0, 0
    while True:
        code, if_true, if_false, operand = program[at]
        at += 1
        if code == 0x20:
            held = words.get(operand, 0)
        elif code == 0x06:
            return operand
        else:
            true = {
                0x15: held == operand,
                0x35: held >= operand,
                0x45: bool(held & operand),
            }[code]
            at += if_true if true else if_false
