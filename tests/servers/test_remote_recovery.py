"""Servers die in mid-episode, and the episode goes on."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import pytest
from server_faults import CORRIDOR, FAULTY, HURRIED, TOKEN, FaultyEnv

from agentgyms import corridor
from agentgyms.corridor import CorridorEnv
from agentgyms.errors import ServerUnavailable, SessionLost
from agentgyms.remote import HttpTransport, InProcessTransport, Patience, RemoteEnv, Reply
from env_servers import create_app
from env_servers.serving import Server

ACTIONS = ["right", "right", "jump", "left", "right", "take key", "right", "right"]


def _sessions(app: Any) -> Any:
    return app.extensions["agentgyms"].sessions


def _lose_all(app: Any) -> None:
    """End every session behind its client's back."""
    for session_id in list(_sessions(app)._open):
        _sessions(app).close(session_id)


def _play_both(remote: Any, trouble: Callable[[int], None], seed: int = 3) -> None:
    """Play one episode here and there, with trouble before each turn, and compare everything."""
    local = CorridorEnv(**remote.arguments)
    assert remote.reset(seed=seed) == local.reset(seed=seed)
    for turn, action in enumerate(ACTIONS):
        trouble(turn)
        result = local.step(action)
        assert tuple(remote.step(action)) == result
        if result[2] or result[3]:
            break
    trouble(-1)
    assert remote.snapshot() == local.snapshot()
    assert remote.reset() == local.reset()


def test_a_lost_session_is_rebuilt_before_every_turn(remote):
    app = create_app(CORRIDOR)
    env = remote(app)
    _play_both(env, lambda _: _lose_all(app))
    assert len(_sessions(app)) == 1


def test_an_expired_session_is_rebuilt(remote, clock):
    app = create_app(CORRIDOR, ttl_s=600, clock=clock)

    def trouble(_: int) -> None:
        clock.now += 601

    _play_both(remote(app), trouble)


@pytest.mark.parametrize("method", ["render", "fork", "snapshot", "tasks", "restore"])
def test_every_call_survives_the_loss_of_its_session(remote, method):
    app = create_app(CORRIDOR)
    env = remote(app, render_mode="ansi")
    env.reset(seed=3)
    env.step("right")
    saved = env.snapshot()
    _lose_all(app)
    if method == "tasks":
        assert len(env.tasks) == 40
    elif method == "restore":
        env.restore(saved)
    else:
        getattr(env, method)()
    assert env.step("right")[4]["turn"] == 2
    local = CorridorEnv(render_mode="ansi")
    local.restore(saved)
    local.step("right")
    assert local.snapshot() == env.snapshot()


def test_the_episode_moves_to_the_second_server():
    apps = {f"http://{name}": create_app(CORRIDOR) for name in ("one", "two")}
    running = dict(apps)
    env = RemoteEnv(
        CORRIDOR, url=list(apps), transport=InProcessTransport(running), patience=HURRIED
    )
    env.reset(seed=3)
    first = next(url for url, app in apps.items() if len(_sessions(app)))
    [second] = set(apps) - {first}

    def trouble(turn: int) -> None:
        running.pop(first if turn >= 2 else "", None)

    _play_both(env, trouble)
    assert len(_sessions(apps[second])) == 1


def test_new_sessions_go_round():
    apps = {f"http://{name}": create_app(CORRIDOR) for name in ("a", "b", "c")}
    transport = InProcessTransport(apps)
    made = [RemoteEnv(CORRIDOR, url=list(apps), transport=transport) for _ in range(6)]
    assert [len(_sessions(app)) for app in apps.values()] == [2, 2, 2]
    assert made


def test_a_full_server_sends_its_clients_on():
    apps = {f"http://{n}": create_app(CORRIDOR, max_sessions=n) for n in (1, 3)}
    transport = InProcessTransport(apps)
    made = [
        RemoteEnv(CORRIDOR, url=list(apps), transport=transport, patience=HURRIED) for _ in range(4)
    ]
    assert [len(_sessions(app)) for app in apps.values()] == [1, 3]
    assert made


def test_a_dead_server_rests_and_is_not_asked_first():
    transport = InProcessTransport({"http://alive": create_app(CORRIDOR)})
    env = RemoteEnv(
        CORRIDOR,
        url=["http://dead", "http://alive"],
        transport=transport,
        patience=Patience(attempts=3, pause_s=0.2),
    )
    forks = []
    started = time.monotonic()
    for _ in range(4):
        env.forget()
        env.reset(seed=0)
        forks.append(env)
    assert time.monotonic() - started < 2, "each attempt waited for the dead one"


def test_the_wait_for_a_lost_server_ends(remote):
    apps = {"http://server": create_app(CORRIDOR)}
    env = RemoteEnv(
        CORRIDOR, url="http://server", transport=InProcessTransport(apps), patience=HURRIED
    )
    env.reset(seed=3)
    apps.clear()
    started = time.monotonic()
    with pytest.raises(ServerUnavailable, match="http://server"):
        env.step("right")
    assert 0.4 < time.monotonic() - started < 3
    apps["http://server"] = create_app(CORRIDOR)
    assert env.step("right")[4]["turn"] == 1, "the episode is still there when the server is"


class LongerCorridor(CorridorEnv):
    """A corridor of another version: it looks the same from its left end."""

    def begin(self, task: Any, rng: Any) -> Any:
        outcome = super().begin(task, rng)
        self._length += 1
        return outcome


def test_a_server_with_another_world_does_not_take_over(monkeypatch):
    apps = {"http://server": create_app(CORRIDOR)}
    env = RemoteEnv(
        CORRIDOR, url="http://server", transport=InProcessTransport(apps), patience=HURRIED
    )
    env.reset(seed=3)
    env.step("right")
    changed = create_app(CORRIDOR)
    monkeypatch.setattr(changed.extensions["agentgyms"].factory, "_class", LongerCorridor)
    apps["http://server"] = changed
    with pytest.raises(SessionLost, match="state_key"):
        env.step("right")
    assert len(_sessions(changed)) == 0, "the session of the attempt was left behind"


@pytest.mark.parametrize("difference", [{"max_turns": 3}, {"split": "sample"}])
def test_a_server_with_other_settings_does_not_take_over(difference):
    apps = {"http://server": create_app(CORRIDOR)}
    env = RemoteEnv(
        CORRIDOR, url="http://server", transport=InProcessTransport(apps), patience=HURRIED
    )
    env.reset(seed=3)
    env.step("right")
    apps["http://server"] = create_app(CORRIDOR, **difference)
    with pytest.raises(SessionLost):
        env.step("right")


def test_a_server_without_the_task_does_not_take_over(monkeypatch):
    apps = {"http://server": create_app(CORRIDOR)}
    env = RemoteEnv(
        CORRIDOR, url="http://server", transport=InProcessTransport(apps), patience=HURRIED
    )
    env.reset(seed=3, options={"task_id": "train/free-038"})
    apps["http://server"] = create_app(CORRIDOR)
    monkeypatch.setitem(corridor._COUNTS, "train", 10)
    with pytest.raises(SessionLost, match="cannot be begun again"):
        env.step("right")


class _Flaky(HttpTransport):
    """HTTP on which replies get lost after the server has acted, or requests before."""

    def __init__(self, pattern: str) -> None:
        super().__init__()
        self.pattern, self.sent = pattern, 0

    def send(self, *args: Any, **kwargs: Any) -> Reply:
        fate = self.pattern[self.sent % len(self.pattern)]
        self.sent += 1
        if fate == "-":
            raise ServerUnavailable("the request was lost")
        reply = super().send(*args, **kwargs)
        if fate == "x":
            raise ServerUnavailable("the reply was lost")
        return reply


@pytest.mark.parametrize("pattern", ["x.", "-.", "x-.", "xx.", "..x.-.xx."])
def test_lost_requests_and_replies_change_nothing(live, pattern):
    patience = Patience(attempts=5, pause_s=0.001)
    env = RemoteEnv(CORRIDOR, url=live, token=TOKEN, transport=_Flaky(pattern), patience=patience)
    for seed in range(2):
        _play_both(env, lambda _: None, seed=seed)
    assert env.fork().snapshot() == env.snapshot()


def test_a_late_copy_of_an_old_request_does_no_harm(live):
    env = RemoteEnv(CORRIDOR, url=live, token=TOKEN)
    env.reset(seed=1)
    old = env.lease
    fields = old.step_fields("right", 1)
    path = f"/v1/sessions/{old.session_id}"
    env.step("left")
    env.reset(seed=2)
    with pytest.raises(SessionLost, match="episode"):
        old.endpoint.call("POST", f"{path}/step", fields)
    old.endpoint.call("POST", f"{path}/reset", {"seed": 1, "options": {}})
    local = CorridorEnv()
    local.reset(seed=2)
    assert tuple(env.step("right")) == local.step("right"), "a late reset was taken for ours"


def test_an_engine_that_was_lost_once_is_replaced(remote):
    app = create_app(FAULTY)
    env = remote(app)
    env.reset(seed=0)
    calls = iter(["lose worker"])
    original = FaultyEnv.act
    try:
        FaultyEnv.act = lambda self, action: original(self, next(calls, action))
        assert env.step("right")[4]["turn"] == 1
    finally:
        FaultyEnv.act = original


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def _serve(port: int) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "env_servers", CORRIDOR, "--port", str(port)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "AGENTGYMS_TOKEN": TOKEN},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def test_a_killed_and_restarted_server_goes_on(processes):
    port = _free_port()
    processes.append(_serve(port))
    env = gym.make(CORRIDOR, url=f"http://127.0.0.1:{port}", token=TOKEN).unwrapped

    def trouble(turn: int) -> None:
        if turn != 2:
            return
        processes[0].send_signal(signal.SIGKILL)
        processes[0].wait()
        # It comes back while the client is already asking for it.
        threading.Timer(0.2, lambda: processes.append(_serve(port))).start()

    _play_both(env, trouble)
    assert len(processes) == 2
    env.close()


def test_a_draining_server_hands_its_episodes_over():
    with Server(create_app(CORRIDOR)) as one, Server(create_app(CORRIDOR)) as two:
        servers = {one.url: one, two.url: two}
        env = RemoteEnv(CORRIDOR, url=list(servers), patience=HURRIED)
        _play_both(env, lambda turn: servers[env.lease.endpoint.url].drain() if turn == 2 else None)
