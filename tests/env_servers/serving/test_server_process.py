"""The program itself: `python -m env_servers` as a process, its signals and its refusals."""

from __future__ import annotations

import itertools
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests
from click.testing import CliRunner
from server_faults import CORRIDOR, FAULTY, FaultyEnv

from agentgyms.remote import RemoteEnv
from agentgyms.serving.addresses import is_loopback
from agentgyms.serving.server import Server
from env_servers import create_app
from env_servers.__main__ import main


def _start(*arguments: str, env_id: str = CORRIDOR, **variables: str) -> subprocess.Popen[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("AGENTGYMS_")}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    return subprocess.Popen(
        [sys.executable, "-m", "env_servers", env_id, *arguments],
        env=environment | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _address(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip().rpartition(" at ")[2]


@pytest.fixture
def process() -> Iterator[subprocess.Popen[str]]:
    started = _start("--port", "0", "--set", "split=sample", "--ttl", "60", AGENTGYMS_TOKEN="tok")
    yield started
    if started.poll() is None:
        started.kill()
    started.communicate()


def test_it_serves_and_sigterm_ends_it(process):
    url = _address(process)
    env = RemoteEnv(CORRIDOR, url=url, token="tok")
    assert (env.split, len(env.tasks)) == ("sample", 4)
    env.reset(seed=1)
    env.step("right")
    env.close()
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--host", "0.0.0.0"], "--insecure"),
        (["--host", "::"], "--insecure"),
        (["--set", "no_such=1"], "no_such"),
        (["--set", "split=nowhere"], "valid_unseen"),
        (["--set", "split"], "KEY=VALUE"),
        (["--set", "ttl_s=3"], "no argument of an environment"),
    ],
)
def test_it_refuses_to_start(arguments, says):
    result = CliRunner().invoke(main, [CORRIDOR, "--port", "0", *arguments])
    assert (result.exit_code, type(result.exception)) == (2, SystemExit)
    assert says in result.output


@pytest.mark.parametrize(
    ("arguments", "variables", "status"),
    [([], {"AGENTGYMS_TOKEN": "tok"}, 401), (["--insecure"], {}, 200)],
    ids=["token", "insecure"],
)
def test_it_listens_beyond_this_machine(arguments, variables, status):
    process = _start("--port", "0", "--host", "0.0.0.0", *arguments, **variables)
    try:
        port = _address(process).rpartition(":")[2]
        assert requests.get(f"http://127.0.0.1:{port}/v1/info", timeout=60).status_code == status
    finally:
        process.kill()
        process.communicate()


def test_a_port_in_use_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = CliRunner().invoke(main, [CORRIDOR, "--port", port])
    assert (result.exit_code, type(result.exception)) == (1, SystemExit)
    assert port in result.output


def test_draining_finishes_what_was_begun():
    FaultyEnv.go_on.clear()
    FaultyEnv.waiting.clear()
    FaultyEnv.open_ones = 0
    with Server(create_app(FAULTY)) as server:
        env = RemoteEnv(FAULTY, url=server.url)
        env.reset(seed=1)
        steps = []
        client = threading.Thread(target=lambda: steps.append(env.step("wait")))
        client.start()
        assert FaultyEnv.waiting.wait(60)
        drained = []
        drain = threading.Thread(target=lambda: drained.append(server.drain(5)))
        drain.start()
        _until_draining(server.url)
        FaultyEnv.go_on.set()
        drain.join()
        client.join()
        assert drained == [True]
        assert FaultyEnv.open_ones == 0, "an environment was left open"
        assert steps[0][4]["turn"] == 1, "the reply of the turn under way was lost"
        assert not _connects(server.url)


def test_draining_loses_no_reply_of_many():
    """Whatever was answered has arrived, and whatever was not has not happened."""
    app = create_app(CORRIDOR, max_turns=10_000)
    taken = app.extensions["agentgyms"].metrics.turns._value
    with Server(app) as server, ThreadPoolExecutor(8) as pool:
        all_open = threading.Barrier(8)
        counts = [pool.submit(_step_until_refused, server.url, all_open) for _ in range(8)]
        while taken.get() < 100:
            time.sleep(0.001)
        assert server.drain(5)
        assert sum(count.result() for count in counts) == taken.get()


def _step_until_refused(url: str, all_open: threading.Barrier) -> int:
    with requests.Session() as session:
        opened = session.post(f"{url}/v1/sessions", timeout=60).json()
        path = f"{url}/v1/sessions/{opened['session_id']}"
        session.post(f"{path}/reset", timeout=60)
        all_open.wait(60)
        for turn in itertools.count(1):
            try:
                reply = session.post(f"{path}/step", json={"action": "x", "turn": turn}, timeout=60)
            except requests.ConnectionError:
                return turn - 1
            if reply.status_code != 200:
                assert reply.json()["error"]["code"] == "draining"
                return turn - 1
    raise AssertionError("it was never refused")


def test_draining_ends_even_if_a_turn_does_not(caplog):
    FaultyEnv.go_on.clear()
    FaultyEnv.waiting.clear()
    with Server(create_app(FAULTY)) as server:
        path = requests.post(f"{server.url}/v1/sessions", timeout=60).json()["session_id"]
        session = f"{server.url}/v1/sessions/{path}"
        requests.post(f"{session}/reset", timeout=60)
        hanging = threading.Thread(target=_post_quietly, args=(f"{session}/step",))
        hanging.start()
        assert FaultyEnv.waiting.wait(60)
        assert server.drain(grace_s=0.1) is False
        FaultyEnv.go_on.set()
        hanging.join()


def _post_quietly(url: str) -> None:
    try:
        requests.post(url, json={"action": "wait", "turn": 1}, timeout=60)
    except requests.ConnectionError:
        return


def _until_draining(url: str) -> None:
    deadline = time.monotonic() + 5
    while requests.get(f"{url}/readyz", timeout=60).status_code != 503:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _connects(url: str) -> bool:
    host, _, port = url.removeprefix("http://").partition(":")
    with socket.socket() as client:
        client.settimeout(2)
        return client.connect_ex((host, int(port))) == 0


def test_an_oversized_body_on_a_socket_gets_its_error(live):
    for length in (2**20 + 1, 2**22):
        reply = requests.post(
            f"{live}/v1/sessions",
            data=b"x" * length,
            headers={"Content-Type": "application/json", "Authorization": "Bearer a-token"},
            timeout=10,
        )
        assert (reply.status_code, reply.json()["error"]["code"]) == (413, "too_large")


def test_what_loopback_is():
    assert all(map(is_loopback, ("127.0.0.1", "127.1.2.3", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "example.org", "")))


def test_the_loop_may_end_before_the_call_that_ends_it_returns():
    with Server(create_app(CORRIDOR)) as server:
        trigger = server._waitress.trigger
        pull = trigger._physical_pull

        def twice() -> None:
            pull()  # as a reply that is just finished does
            server._thread.join(timeout=5)
            pull()

        trigger._physical_pull = twice
        server.stop()
        trigger._physical_pull = pull
    assert not server._thread.is_alive()
    with pytest.raises(requests.ConnectionError):
        requests.get(f"{server.url}/healthz", timeout=60)
