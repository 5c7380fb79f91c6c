"""Servers die in mid-episode, and the episode goes on."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from rebuilding import lose_all, play_both, sessions
from server_faults import CORRIDOR, FAULTY, HURRIED, TOKEN, FaultyEnv

from agentgyms.core.errors import ServerUnavailable, SessionLost, UnknownTask
from agentgyms.envs.corridor import CorridorEnv
from agentgyms.remote import (
    HttpTransport,
    InProcessTransport,
    Patience,
    RemoteEnv,
    RemoteVectorEnv,
    Reply,
)
from env_servers import create_app


def test_a_lost_session_is_rebuilt_before_every_turn(remote):
    app = create_app(CORRIDOR)
    env = remote(app)
    play_both(env, lambda _: lose_all(app))
    assert len(sessions(app)) == 1


def test_an_expired_session_is_rebuilt(remote, clock):
    app = create_app(CORRIDOR, ttl_s=600, clock=clock)

    def trouble(_: int) -> None:
        clock.now += 601

    play_both(remote(app), trouble)


@pytest.mark.parametrize("method", ["render", "fork", "snapshot", "tasks", "restore"])
def test_every_call_survives_the_loss_of_its_session(remote, method):
    app = create_app(CORRIDOR)
    env = remote(app, render_mode="ansi")
    env.reset(seed=3)
    env.step("right")
    saved = env.snapshot()
    lose_all(app)
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


@pytest.mark.parametrize("vector", [False, True])
def test_a_reset_that_is_refused_in_a_new_session_leaves_the_episode(vector):
    """Of the new session nobody may believe that the episode stands there."""
    app = create_app(CORRIDOR, token="")
    kwargs = {"url": "http://server", "patience": HURRIED}
    kwargs["transport"] = InProcessTransport({"http://server": app})
    env = RemoteVectorEnv(CORRIDOR, 2, **kwargs) if vector else RemoteEnv(CORRIDOR, **kwargs)
    action = ["right"] * 2 if vector else "right"
    env.reset(seed=3)
    env.step(action)
    lose_all(app)
    with pytest.raises(UnknownTask):
        env.reset(options={"task_id": "no such task"})
    assert np.all(env.step(action)[4]["turn"] == 2)
    env.close()
    assert len(sessions(app)) == 0, "a session was left behind"


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
        play_both(env, lambda _: None, seed=seed)
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
