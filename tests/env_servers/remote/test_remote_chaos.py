"""Servers in processes of their own die, hang and come back, and episodes go on as if not."""

from __future__ import annotations

import multiprocessing
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import pytest
from ledger import LEDGER, SERVED
from replicas import Replica
from scripts import Script
from server_faults import CORRIDOR, TOKEN

from agentgyms.core.errors import EnvUnavailable, ServerUnavailable
from agentgyms.remote import Patience, RemoteEnv, RemoteVectorEnv

PATIENT: Final = Patience(read_s=30, attempts=2, pause_s=0.02, lost_s=60)


class Ground:
    """Starts servers for a test, and ends them after it."""

    def __init__(self) -> None:
        self.replicas: list[Replica] = []
        self.restarts: list[threading.Timer] = []

    def start(self, number: int, env_id: str, *arguments: str) -> list[Replica]:
        """Return running servers."""
        new = [Replica(env_id, *arguments) for _ in range(number)]
        self.replicas += new
        for replica in new:
            replica.begin()
        for replica in new:
            replica.await_start()
        return new

    def kill_and_restart(self, replica: Replica) -> None:
        """Kill a server; another one takes its place in a moment."""
        replica.kill()
        self.restarts.append(threading.Timer(0.1, replica.start))
        self.restarts[-1].start()

    def close(self) -> None:
        for restart in self.restarts:
            restart.join()
        for replica in self.replicas:
            replica.close()


@pytest.fixture
def ground() -> Iterator[Ground]:
    made = Ground()
    yield made
    made.close()


def _kill_soon(replica: Replica) -> None:
    """Kill a server within the calls that follow."""
    threading.Timer(0.003, replica.kill).start()


def test_one_of_two_servers_is_killed(ground):
    script = Script(CORRIDOR, 64, 12)
    one, two = ground.start(2, CORRIDOR)
    there = {"url": [one.url, two.url], "patience": PATIENT}
    script.play_as_a_vector(lambda: _kill_soon(one), (4,), **there)
    one.start()
    script.play_in_threads(lambda: _kill_soon(two), (script.turns // 2,), **there)
    assert one.figure("agentgyms_sessions") == 0, "all were closed"


ENVIRONMENTS = [
    ("ALFWorld", 64, 20, {}),
    ("WebShop", 64, 10, {}),
    ("Sokoban", 64, 15, {"split": "sample"}),  # the others take seconds to be generated
    ("SearchQA", 64, 4, {}),
    ("SOTOPIA", 64, 6, {}),
    ("Tau2", 64, 6, {}),
    ("AppWorld", 16, 4, {}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "members", "turns", "kwargs"), ENVIRONMENTS)
def test_a_server_is_killed_under_every_environment(ground, name, members, turns, kwargs):
    """Once a second one takes over, and once it comes back itself."""
    env_id = f"agentgyms/{name}-v0"
    script = Script(env_id, members, turns, **kwargs)
    settings = [f"--set={key}={value}" for key, value in kwargs.items()]
    one, two = ground.start(2, env_id, *settings)
    both = {"url": [one.url, two.url], "patience": PATIENT}
    script.play_as_a_vector(lambda: _kill_soon(one), (turns // 2,), **both)
    alone = {"url": two.url, "patience": PATIENT}
    script.play_in_threads(lambda: ground.kill_and_restart(two), (script.turns // 2,), **alone)
    ground.restarts[0].join()
    assert two.figure("agentgyms_sessions") == 0, "all were closed"


@pytest.mark.slow
def test_both_servers_are_killed_one_after_the_other(ground):
    script = Script(CORRIDOR, 64, 20)
    one, two = ground.start(2, CORRIDOR)
    there = {"url": [one.url, two.url], "patience": PATIENT}
    left = [two, one]
    script.play_as_a_vector(lambda: ground.kill_and_restart(left.pop()), (3, 6), **there)
    for restart in ground.restarts:
        restart.join()
    left[:] = [two, one]
    moments = (script.turns // 3, 2 * script.turns // 3)
    script.play_in_threads(lambda: ground.kill_and_restart(left.pop()), moments, **there)


@pytest.mark.slow
@pytest.mark.parametrize("vector", [False, True])
def test_a_server_that_hangs_is_left(ground, vector):
    """It takes a client's patience once, not once for every member or request."""
    script = Script(CORRIDOR, 16, 8)
    one, two = ground.start(2, CORRIDOR)
    there = {"url": [one.url, two.url], "patience": replace(PATIENT, read_s=2.0)}
    started = time.monotonic()
    play = script.play_as_a_vector if vector else script.play_in_threads
    play(lambda: one.signal(signal.SIGSTOP), (3,) if vector else (script.turns // 2,), **there)
    assert time.monotonic() - started < 12
    one.signal(signal.SIGCONT)
    give_up = time.monotonic() + 10
    while one.figure("agentgyms_sessions") and time.monotonic() < give_up:
        time.sleep(0.1)
    assert one.figure("agentgyms_sessions") == 0, "it was told, and learns it when it goes on"
    assert two.figure("agentgyms_sessions") == 0


@pytest.mark.slow
def test_a_server_that_is_told_to_stop_hands_over(ground):
    script = Script(CORRIDOR, 64, 12)
    one, two = ground.start(2, CORRIDOR)
    there = {"url": [one.url, two.url], "patience": PATIENT}
    script.play_as_a_vector(lambda: one.signal(signal.SIGTERM), (4,), **there)
    assert one.wait() == 0
    one.start()
    moment = (script.turns // 2,)
    script.play_in_threads(lambda: two.signal(signal.SIGTERM), moment, **there)
    assert two.wait() == 0


@pytest.mark.slow
def test_a_server_that_comes_back_gets_sessions_again(ground):
    one, two = ground.start(2, CORRIDOR)
    urls = [one.url, two.url]
    one.kill()
    kept = RemoteVectorEnv(CORRIDOR, 4, url=urls, token=TOKEN, patience=PATIENT)
    assert two.figure("agentgyms_sessions") == 4
    one.start()
    more = RemoteVectorEnv(CORRIDOR, 8, url=urls, token=TOKEN, patience=PATIENT)
    assert one.figure("agentgyms_sessions") == 4
    kept.close()
    more.close()


def _open_and_wait(urls: list[str], number: int, opened: Any, done: Any) -> None:
    envs = [RemoteEnv(CORRIDOR, url=urls, token=TOKEN) for _ in range(number)]
    opened.release()
    done.wait()
    for env in envs:
        env.close()


@pytest.mark.slow
def test_sessions_of_several_processes_are_spread(ground):
    """Not all processes begin with the same server, not even forks of one that has begun."""
    servers = ground.start(3, CORRIDOR)
    urls = [server.url for server in servers]
    RemoteEnv(CORRIDOR, url=urls, token=TOKEN).close()
    context = multiprocessing.get_context("fork")
    opened, done = context.Semaphore(0), context.Event()
    processes = [
        context.Process(target=_open_and_wait, args=(urls, 4, opened, done)) for _ in range(12)
    ]
    for process in processes:
        process.start()
    for _ in processes:
        assert opened.acquire(timeout=20)
    sessions = [server.figure("agentgyms_sessions") for server in servers]
    done.set()
    for process in processes:
        process.join(10)
    assert sum(sessions) == 48
    assert max(sessions) < 24, "every process gives one more to one of them, but not to the same"


@pytest.mark.slow
@pytest.mark.parametrize(("vector", "url_count"), [(False, 1), (True, 2)])
def test_when_all_is_lost_the_error_says_what_to_do(ground, url_count, vector):
    servers = ground.start(url_count, SERVED)
    patience = replace(PATIENT, lost_s=1.0)
    kwargs = {"url": [one.url for one in servers], "token": TOKEN, "patience": patience}
    env = RemoteVectorEnv(LEDGER, 8, **kwargs) if vector else RemoteEnv(LEDGER, **kwargs)
    env.reset(seed=0)
    action = ["debit"] * 8 if vector else "debit"
    env.step(action)
    for server in servers:
        server.kill()
    started = time.monotonic()
    with pytest.raises(EnvUnavailable) as caught:
        env.step(action)
    assert 0.9 < time.monotonic() - started < 5
    said = str(caught.value)
    assert isinstance(caught.value, ServerUnavailable)
    for server in servers:
        assert f"{server.url} (Connection refused" in said
    assert "patience.lost_s is 1" in said
    assert "the same call goes on with it" in said
    assert f"python -m env_servers MODULE:{LEDGER} --port {servers[0].port}" in said
    servers[0].start()
    turn = env.step(action)[4]["turn"]
    assert (turn == 2).all() if vector else turn == 2
    env.close()
