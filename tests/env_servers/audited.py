"""Ledgers on a server, compared with ledgers here: what the tests of accidents share."""

from __future__ import annotations

import contextlib
import json
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import requests
from fault_proxy import FaultProxy
from ledger import LEDGER, LedgerEnv
from server_faults import TOKEN

from agentgyms.core.errors import ServerUnavailable
from agentgyms.remote import Patience, RemoteEnv
from agentgyms.serving.server import Server
from env_servers import create_app

PATIENT = Patience(connect_s=5, read_s=10, attempts=12, pause_s=0.002, lost_s=30)
HASTY_S = 0.25
HASTY = replace(PATIENT, read_s=HASTY_S)
ACTIONS = ("debit", "credit", "wait", "debit", "audit " * 20, "")


class Books:
    """A server of ledgers, as a test looks into it."""

    def __init__(self, url: str, app: Any) -> None:
        self.url, self.sessions = url, app.extensions["agentgyms"].sessions

    def acts(self, env: RemoteEnv) -> list[str]:
        """Return the actions that the session of an environment has taken."""
        path = f"{self.url}/v1/sessions/{env.lease.session_id}/trajectory"
        reply = requests.get(path, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60)
        assert reply.status_code == 200, reply.text
        return [json.loads(line)["action"] for line in reply.text.splitlines()[2:]]

    def is_empty_within(self, seconds: float) -> bool:
        """Return whether all sessions are gone after some time."""
        give_up = time.monotonic() + seconds
        while len(self.sessions) and time.monotonic() < give_up:
            time.sleep(0.05)
        return len(self.sessions) == 0


@contextlib.contextmanager
def kept(**settings: Any) -> Iterator[Books]:
    app = create_app(LEDGER, token=TOKEN, **settings)
    with Server(app) as server:
        yield Books(server.url, app)


class Pair:
    """An environment behind a proxy and one here, which must never differ."""

    def __init__(self, there: RemoteEnv, here: LedgerEnv, rng: random.Random) -> None:
        self.there, self.here, self.rng = there, here, rng
        self.saved: bytes | None = None

    def begin(self, seed: int | None) -> None:
        assert self.there.reset(seed=seed) == self.here.reset(seed=seed)

    def step(self, action: str = "") -> bool:
        action = action or self.rng.choice(ACTIONS)
        result = self.here.step(action)
        assert tuple(self.there.step(action)) == result
        return result[2] or result[3]

    def do_something(self) -> bool:
        """Make one call on both; return whether the episode has ended."""
        chance = self.rng.random()
        if chance < 0.72:
            return self.step()
        if chance < 0.80:
            self.saved = self.here.snapshot()
            assert self.there.snapshot() == self.saved
        elif chance < 0.88 and self.saved is not None:
            assert self.there.restore(self.saved) == self.here.restore(self.saved)
        elif chance < 0.94:
            twins = Pair(self.there.fork(), self.here.fork(), self.rng)
            twins.step("in a fork")
            twins.there.close()
        elif chance < 0.97:
            self.begin(None)
        else:
            assert self.there.render() == self.here.render()
        return False

    def play(self, seed: int, calls: int) -> None:
        self.begin(seed)
        for _ in range(calls):
            if self.do_something():
                self.begin(None)


def made(kind: Callable[..., Any], *args: Any, patience: Patience, **kwargs: Any) -> Any:
    """Make a client, again if the first requests got no reply: it has no episode to keep yet."""
    for _ in range(20):
        with contextlib.suppress(ServerUnavailable):
            return kind(LEDGER, *args, token=TOKEN, patience=patience, **kwargs)
    raise AssertionError("the servers cannot be reached")


def pair(proxy: FaultProxy, seed: int, patience: Patience = PATIENT) -> Pair:
    kwargs = {"render_mode": "ansi"}
    there = made(RemoteEnv, url=proxy.url, patience=patience, **kwargs)
    return Pair(there, LedgerEnv(**kwargs), random.Random(seed))
