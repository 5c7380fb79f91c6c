"""Several servers: who gets a session, and who takes over when another one dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import pytest
from ports import free_port
from rebuilding import play_both, sessions
from server_faults import CORRIDOR, HURRIED, TOKEN

from agentgyms.core.errors import SessionLost
from agentgyms.envs import corridor
from agentgyms.envs.corridor import CorridorEnv
from agentgyms.remote import InProcessTransport, Patience, RemoteEnv, RemoteVectorEnv
from agentgyms.serving.server import Server
from env_servers import create_app


def test_the_episode_moves_to_the_second_server():
    apps = {f"http://{name}": create_app(CORRIDOR) for name in ("one", "two")}
    running = dict(apps)
    env = RemoteEnv(
        CORRIDOR, url=list(apps), transport=InProcessTransport(running), patience=HURRIED
    )
    env.reset(seed=3)
    first = next(url for url, app in apps.items() if len(sessions(app)))
    [second] = set(apps) - {first}

    def trouble(turn: int) -> None:
        running.pop(first if turn >= 2 else "", None)

    play_both(env, trouble)
    assert len(sessions(apps[second])) == 1


def test_new_sessions_go_round():
    apps = {f"http://{name}": create_app(CORRIDOR) for name in ("a", "b", "c")}
    transport = InProcessTransport(apps)
    made = [RemoteEnv(CORRIDOR, url=list(apps), transport=transport) for _ in range(6)]
    assert [len(sessions(app)) for app in apps.values()] == [2, 2, 2]
    assert made


def test_a_full_server_sends_its_clients_on():
    apps = {f"http://{n}": create_app(CORRIDOR, max_sessions=n) for n in (1, 3)}
    transport = InProcessTransport(apps)
    made = [
        RemoteEnv(CORRIDOR, url=list(apps), transport=transport, patience=HURRIED) for _ in range(4)
    ]
    assert [len(sessions(app)) for app in apps.values()] == [1, 3]
    assert made


def test_a_full_server_sends_members_of_a_vector_on():
    apps = {f"http://{n}": create_app(CORRIDOR, max_sessions=n) for n in (1, 7)}
    transport = InProcessTransport(apps)
    vector = RemoteVectorEnv(
        CORRIDOR, 8, url=list(apps), transport=transport, patience=HURRIED, split="sample"
    )
    assert [len(sessions(app)) for app in apps.values()] == [1, 7]
    vector.close()
    assert [len(sessions(app)) for app in apps.values()] == [0, 0]


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
    assert len(sessions(changed)) == 0, "the session of the attempt was left behind"


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
    port = free_port()
    processes.append(_serve(port))
    env = gym.make(CORRIDOR, url=f"http://127.0.0.1:{port}", token=TOKEN).unwrapped

    back = threading.Timer(0.2, lambda: processes.append(_serve(port)))

    def trouble(turn: int) -> None:
        if turn != 2:
            return
        processes[0].send_signal(signal.SIGKILL)
        processes[0].wait()
        back.start()  # it comes back while the client is already asking for it

    play_both(env, trouble)
    back.join()
    assert len(processes) == 2
    env.close()


def test_a_draining_server_hands_its_episodes_over():
    with Server(create_app(CORRIDOR)) as one, Server(create_app(CORRIDOR)) as two:
        servers = {one.url: one, two.url: two}
        env = RemoteEnv(CORRIDOR, url=list(servers), patience=HURRIED)
        play_both(env, lambda turn: servers[env.lease.endpoint.url].drain() if turn == 2 else None)
