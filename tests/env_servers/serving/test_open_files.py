"""Files: connections leave those of the sessions, and their lack is told and waited out."""

from __future__ import annotations

import errno
import os
import resource
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress
from typing import Any, Final

import pytest
import requests
from server_faults import CORRIDOR, FAULTY, TOKEN, Api, FaultyEnv, code

from agentgyms import make_group
from agentgyms.core.errors import ServerUnavailable
from agentgyms.remote import Patience, RemoteEnv, RemoteVectorEnv
from agentgyms.serving import open_files
from env_servers import Server, create_app

APPWORLD: Final = "agentgyms/AppWorld-v0"
PATIENT: Final = Patience(attempts=4, pause_s=0.01, full_s=0, lost_s=0)


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The limits on files as the process sees and sets them."""
    seen = [(1024, 4096)]
    monkeypatch.setattr(resource, "getrlimit", lambda _: seen[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, new: seen.append(new))
    return seen


@pytest.mark.parametrize(
    ("before", "wanted", "after", "allowed"),
    [
        ((1024, 4096), 2000, (2000, 4096), 2000),
        ((1024, 4096), 9000, (4096, 4096), 4096),
        ((1024, resource.RLIM_INFINITY), 9000, (9000, resource.RLIM_INFINITY), 9000),
        ((8192, 8192), 2000, (8192, 8192), 8192),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), 2000, None, 2000),
    ],
)
def test_the_limit_is_raised_as_far_as_needed(limits, before, wanted, after, allowed):
    limits.append(before)
    assert open_files.allow(wanted) == allowed
    assert limits[-1] == (after or before)


@pytest.mark.parametrize(
    ("files", "sessions", "connections"),
    [
        (1 << 20, 256, 1124),  # as many as clients may want
        (2048, 256, 2048 - 64 - 6 * 256 if 2048 - 64 - 6 * 256 > 992 else 992),
        (1024, 256, 480),  # half of what there is
        (1024, 32, 228),
        (64, 4, 16),
    ],
)
def test_connections_leave_files_for_sessions(limits, files, sessions, connections):
    limits.append((files, files))
    assert open_files.connection_limit(sessions, 6) == connections


def test_too_few_files_are_told(limits, caplog):
    open_files.allow_sessions(16, 6)
    assert caplog.text == ""
    open_files.allow_sessions(2000, 6)
    assert "2000 sessions and their clients need up to 20164" in caplog.text


@pytest.mark.slow
def test_idle_connections_take_no_files_of_sessions():
    """More connections than there are files, on a server of an engine that needs them."""
    sessions, files = 60, 120
    with ExitStack() as opened:
        server = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "env_servers",
                APPWORLD,
                "--port=0",
                f"--max-sessions={sessions}",
            ],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "AGENTGYMS_TOKEN": TOKEN},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)),
        )
        opened.callback(server.communicate)
        opened.callback(server.send_signal, signal.SIGTERM)
        assert server.stdout is not None
        url = server.stdout.readline().strip().rpartition(" at ")[2]
        port = int(url.rpartition(":")[2])
        for _ in range(2 * files):
            opened.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
        with make_group(APPWORLD, sessions, url=url, token=TOKEN) as group:
            group.reset(seed=1)
            results = group.step(["print(1)"] * sessions)
        assert [result[0] for result in results] == ["1\n"] * sessions
        metrics = requests.get(f"{url}/metrics", timeout=30).text
    assert 'agentgyms_errors_total{code="' not in metrics


def test_the_lack_of_files_is_told(faulty):
    FaultyEnv.files_missing = 2
    path = faulty.open(broken="no files")
    for _ in range(2):
        assert code(faulty.post(f"{path}/reset", {"seed": 1})) == (503, "overloaded")
        assert faulty.response.headers["Retry-After"] == "1"
        assert "srv" not in faulty.response.get_data(as_text=True)
    assert faulty.post(f"{path}/reset", {"seed": 1})[0] == 200


def test_the_lack_of_files_while_making_is_told(monkeypatch):
    def fail(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENFILE, "Too many open files in system")

    api = Api(create_app(FAULTY, token=""))
    monkeypatch.setattr(FaultyEnv, "__init__", fail)
    assert code(api.post("/v1/sessions")) == (503, "overloaded")
    reply = api.post("/v1/batch/create", {"items": [{}]})[1]["results"][0]
    assert reply["error"]["code"] == "overloaded"


def test_the_client_asks_an_overloaded_server_again(faulty, remote, monkeypatch):
    pauses: list[float] = []
    monkeypatch.setattr("agentgyms.remote.endpoint.time.sleep", pauses.append)
    env = remote(faulty.app, broken="no files", patience=PATIENT)
    FaultyEnv.files_missing = 3
    assert env.reset(seed=1)[1]["turn"] == 0
    assert pauses == [1.0] * 3
    assert faulty.app.extensions["agentgyms"].metrics.opened._value.get() == 1
    FaultyEnv.files_missing = 100
    with pytest.raises(ServerUnavailable, match="can open no file more"):
        env.reset(seed=1)
    FaultyEnv.files_missing = 0
    env.close()


def test_members_of_a_vector_wait_for_files(faulty):
    with Server(faulty.app) as server:
        vector = RemoteVectorEnv(FAULTY, 3, url=server.url, broken="no files")
        FaultyEnv.files_missing = 2
        assert len(vector.reset(seed=1)[0]) == 3
        vector.close()


def test_a_server_that_cannot_accept_closes_idle_connections(monkeypatch):
    with ExitStack() as opened, Server(create_app(CORRIDOR, token="")) as server:
        listening = server._waitress.socket
        port = listening.getsockname()[1]
        idle = [
            opened.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
            for _ in range(20)
        ]
        with requests.Session() as ours:
            assert ours.get(f"{server.url}/healthz", timeout=30).ok
            for channel in server._waitress.active_channels.values():
                channel.last_activity -= 60
            failures = [OSError(errno.EMFILE, "Too many open files")] * 3

            class Listening:
                def __getattr__(self, name: str) -> Any:
                    return getattr(listening, name)

                def accept(self) -> Any:
                    if failures:
                        raise failures.pop()
                    return listening.accept()

            monkeypatch.setattr(server._waitress, "socket", Listening())
            env = RemoteEnv(CORRIDOR, url=server.url)
            env.reset(seed=1)
            env.close()
            assert not failures
        ended = 0
        for connection in idle:
            connection.settimeout(0.2)
            with suppress(TimeoutError):
                ended += connection.recv(1) == b""
        assert ended >= 16
