"""Executors on systems that lack a part of the confinement: what is left must hold."""

import sys
from pathlib import Path

import pytest
from kettle import BRIEF

from agentgyms.envs.appworld.sandbox import commands, executors
from agentgyms.envs.appworld.sandbox.executors import ConfinementWarning, Executor
from agentgyms.envs.appworld.sandbox.forkserver import ForkServer
from agentgyms.envs.appworld.world import ApiResponse

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Landlock and seccomp are Linux's")

_SERVER = """
import sys
sys.path.insert(0, {folder!r})
from child import executor, landlock, seccomp, server
{lacking}
del sys.path[0]
server.serve_forks(int(sys.argv[-1]), executor, {{"kind": "mini"}})
"""


@pytest.fixture
def lease():
    servers = []

    def one(lacking):
        program = _SERVER.format(folder=str(Path(commands.__file__).parent), lacking=lacking)
        command = [sys.executable, "-P", "-s", "-B", "-S", "-c", program]
        servers.append(ForkServer(command, environment=commands.role_environment()))
        executors._warn_of_missing_confinement.cache_clear()
        leased = Executor(servers[-1].fork())
        with pytest.warns(ConfinementWarning):
            leased.begin(BRIEF)
        return leased

    yield one
    for server in servers:
        server.close()


def run(process, code):
    return process.run(code, lambda *_: ApiResponse(value="hot"), timeout_s=5, max_calls=5)


def test_without_landlock_no_file_can_be_opened(lease):
    process = lease("landlock.version = lambda: 0")
    assert process.confinement["missing"] == ["Landlock"]
    assert process.confinement["seccomp"]
    for place in (f"/proc/{process.pid}/../self/environ", "/etc/hostname", "/proc/self/mem"):
        assert run(process, f"open({place!r})").error.startswith("PermissionError: [Errno 1]")
    code = (
        "import pprint, csv, uuid, textwrap, difflib, fractions, heapq, string, statistics\n"
        "print(apis.kettle.boil(), DateTime.strptime('1.2.2024', '%d.%m.%Y'), '\\N{BULLET}')"
    )
    assert run(process, code).output == "hot 2024-02-01 00:00:00 \N{BULLET}\n"
    assert run(process, "1 / 0").error == "ZeroDivisionError: division by zero"
    process.close()


def test_without_seccomp_files_are_still_out_of_reach(lease):
    process = lease("seccomp.restrict = lambda *, opens: False")
    assert process.confinement["missing"] == ["seccomp"]
    if not process.confinement["landlock"]:
        pytest.skip("this system lacks Landlock too")
    assert run(process, "open('/etc/hostname')").error.startswith("PermissionError: [Errno 13]")
    assert run(process, "import _io; _io.open('/tmp/new', 'w')").error.startswith(
        "PermissionError: [Errno 13]"
    )
    process.close()
