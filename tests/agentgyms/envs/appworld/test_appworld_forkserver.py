"""Children of fork servers: many at once, killed, late, and none left behind."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from agentgyms.core.errors import WorkerLost
from agentgyms.envs.appworld.sandbox.forkserver import (
    ForkServer,
    WorkerDied,
    role_command,
    role_environment,
)
from agentgyms.processes import workers as counted
from agentgyms.serving import open_files

BEGIN = {"begin": {"apis": {}, "now": "2024-02-29T12:00:00", "seed": 1}}
BEGIN["begin"] |= {"chance": "try_1", "memory_mb": 256}


def command(role="executor"):
    return role_command(sys.executable, role, {"kind": "mini"}, site_packages=False)


@pytest.fixture
def open_server():
    servers = []

    def make(**options):
        servers.append(ForkServer(command(), environment=role_environment(), **options))
        return servers[-1]

    yield make
    for server in servers:
        server.close()


@pytest.fixture(scope="module")
def server():
    shared = ForkServer(command(), environment=role_environment())
    yield shared
    shared.close()


def say(worker, code, turn=1, limit_s=10.0):
    message = {"execute": {"code": code, "timeout_s": 5, "turn": turn}}
    return worker.request(message, limit_s)["done"]["output"]


def is_gone(pid, within_s=3.0):
    """Whether a process has ended and was reaped."""
    deadline = time.monotonic() + within_s
    while Path(f"/proc/{pid}").exists():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def num_files():
    return len(list(Path("/proc/self/fd").iterdir()))


on_linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def test_a_process_with_many_files_has_one_too(open_server):
    """`select.select` takes no number above 1,023, and a large server has as many connections."""
    if open_files.allow(1200) < 1200:
        pytest.skip("this process may open fewer files")
    with ExitStack() as opened:
        while opened.enter_context(Path(os.devnull).open()).fileno() < 1100:
            pass
        server = open_server()
        worker = server.fork()
        worker.request(BEGIN, 10)
        assert say(worker, "print(1)") == "1\n"
        worker.close()
        server.close()


@on_linux
def test_many_at_once_share_nothing_and_leave_nothing(server):
    server.warm()
    before = num_files()

    def play(number):
        worker = server.fork()
        worker.request(BEGIN, 10)
        say(worker, f"mine = {number}")
        answer = say(worker, "print(mine)", turn=2)
        worker.close()
        return worker.pid, answer

    with ThreadPoolExecutor(12) as pool:
        played = list(pool.map(play, range(12)))
    assert [answer for _, answer in played] == [f"{n}\n" for n in range(12)]
    assert len({pid for pid, _ in played}) == 12
    assert all(is_gone(pid) for pid, _ in played)
    assert num_files() == before


@on_linux
def test_a_child_holds_its_line_and_nothing_else(server):
    others = [server.fork() for _ in range(3)]
    worker = server.fork()
    worker.request(BEGIN, 10)
    code = (
        "import os\nheld = []\nfor fd in range(64):\n    try:\n        os.fstat(fd)\n"
        "        held.append(fd)\n    except OSError: pass\nprint(len(held))"
    )
    assert say(worker, code) == "4\n"  # the three standard ones are /dev/null
    for other in (*others, worker):
        other.close()


def test_a_child_that_is_killed_says_so(server):
    worker = server.fork()
    assert worker.alive
    os.kill(worker.pid, signal.SIGKILL)
    with pytest.raises(WorkerDied, match="died of SIGKILL") as died:
        worker.receive(5)
    assert (died.value.signal, died.value.exit_code, died.value.timed_out) == (9, None, False)
    assert not worker.alive
    with pytest.raises(WorkerDied, match="was ended before"):
        worker.send({})


@on_linux
def test_a_child_that_is_stopped_goes_on_or_is_killed(server):
    worker, other = server.fork(), server.fork()
    for each in (worker, other):
        each.request(BEGIN, 10)
        each.pause()
        assert each.alive
    worker.resume()
    assert say(worker, "print(1)") == "1\n"
    worker.pause()
    worker.close()
    os.kill(other.pid, signal.SIGKILL)
    with pytest.raises(WorkerDied, match="died of SIGKILL"):
        other.receive(30)
    for each in (worker, other):
        assert is_gone(each.pid)
        each.resume()


def test_a_child_that_is_late_is_ended(server):
    worker = server.fork()
    worker.request(BEGIN, 10)
    with pytest.raises(WorkerDied, match="did not respond in time") as died:
        say(worker, "while True:\n    try:\n        x = 1\n    except Exception: pass", limit_s=0.2)
    assert (died.value.signal, died.value.exit_code, died.value.timed_out) == (None, None, True)


def test_an_exception_of_a_role_is_told(server):
    worker = server.fork()
    with pytest.raises(WorkerLost, match=r"KeyError at executor\.py:\d+: 'begin'"):
        worker.request({"unknown": 1}, 5)


@on_linux
def test_children_end_with_their_server_and_another_takes_its_place(open_server):
    server = open_server()
    workers = [server.fork() for _ in range(3)]
    for worker in workers:
        worker.request(BEGIN, 10)
    workers[0].pause()
    first = server.pid
    os.kill(first, signal.SIGKILL)
    deadline = time.monotonic() + 60
    while any(worker.alive for worker in workers) and time.monotonic() < deadline:
        time.sleep(0.01)
    for worker in workers:
        with pytest.raises(WorkerDied) as died:
            say(worker, "print(1)")
        assert died.value.signal == signal.SIGKILL
    fresh = server.fork()
    fresh.request(BEGIN, 10)
    assert say(fresh, "print(2)") == "2\n"
    fresh.close()
    assert server.pid != first
    assert all(is_gone(worker.pid) for worker in workers)


@pytest.mark.slow
@on_linux
def test_a_server_is_replaced_after_so_many_forks(open_server):
    server = open_server(forks=2, kind="test-role")
    old = [server.fork(), server.fork()]
    first = server.pid
    new = server.fork()
    assert server.pid != first
    old[0].request(BEGIN, 10)
    assert say(old[0], "print('still here')") == "still here\n"
    for worker in old:
        worker.close()
    server.fork().close()
    assert is_gone(first)
    new.close()
    count = counted.counts()
    assert (count["test-role-server"].starts, count["test-role-server"].recycled) == (2, 1)
    assert count["test-role"] == counted.Count(starts=4)


def test_children_that_are_lost_are_counted(open_server):
    server = open_server(kind="test-loss")
    worker, late, other = (server.fork() for _ in range(3))
    os.kill(worker.pid, signal.SIGKILL)
    with pytest.raises(WorkerDied):
        worker.receive(5)
    with pytest.raises(WorkerDied, match="in time"):
        late.receive(0.01)
    late.close()
    other.close()
    assert counted.counts()["test-loss"] == counted.Count(starts=3, lost=2)


def test_a_server_that_does_not_start_says_why():
    with pytest.raises(WorkerLost, match="cannot be started: .*no/such/python"):
        ForkServer(["/no/such/python"], environment={}).fork()
    with pytest.raises(WorkerLost, match="role: expected one of executor, .*, got 'cook'"):
        ForkServer(command("cook"), environment=role_environment()).fork()
    slow = [sys.executable, "-c", "import time; time.sleep(60)"]
    with pytest.raises(WorkerLost, match=r"sent no response in 0\.3 s"):
        ForkServer(slow, environment={}, start_limit_s=0.3).warm()


def test_no_secret_of_this_process_reaches_a_child(server, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "abcdef123456")
    worker = server.fork()
    worker.request(BEGIN, 10)
    seen = say(worker, "import os, sys\nprint(dict(os.environ), sys.argv, sys.orig_argv)")
    assert "SECRET" not in seen
    assert "abcdef123456" not in seen
    worker.close()


_PARENT = """
import os, sys, time
from agentgyms.processes import workers as counted
from agentgyms.serving import open_files
from agentgyms.envs.appworld.sandbox.forkserver import ForkServer, role_command, role_environment
command = role_command(sys.executable, "executor", {"kind": "mini"}, site_packages=False)
server = ForkServer(command, environment=role_environment())
worker = server.fork()
begin = %r
worker.request(begin, 10)
if child := os.fork():
    assert os.waitpid(child, 0)[1] == 0
    mine = worker.request({"execute": {"code": "print(3)", "timeout_s": 5, "turn": 1}}, 10)
    assert mine["done"]["output"] == "3\\n"
else:
    theirs = server.fork()
    theirs.request(begin, 10)
    print(server.pid)
    theirs.close()
    server.close()
    sys.stdout.flush()
    os._exit(0)
worker.send({"execute": {"code": "while True: pass", "timeout_s": 60, "turn": 2}})
print(server.pid, worker.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.slow
@on_linux
def test_a_fork_of_the_process_has_a_server_of_its_own_and_nothing_outlives_a_kill():
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-c", _PARENT % BEGIN],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[4],
    ) as parent:
        (theirs,) = map(int, parent.stdout.readline().split())
        ours, worker = map(int, parent.stdout.readline().split())
        assert theirs != ours
        assert is_gone(theirs)
        assert Path(f"/proc/{ours}").exists()
        parent.kill()
        assert is_gone(worker)
        assert is_gone(ours)
