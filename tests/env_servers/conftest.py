"""Fixtures of the server tests."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from audited import Books, kept
from server_faults import CORRIDOR, FAULTY, HURRIED, TOKEN, Api, Clock, FaultyEnv

from agentgyms.remote import InProcessTransport, RemoteEnv
from agentgyms.serving.server import Server
from env_servers import create_app


@pytest.fixture(autouse=True)
def _no_ambient_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("AGENTGYMS_"):
            monkeypatch.delenv(name)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="module")
def api() -> Api:
    """A corridor server without a token, in process, that a module's tests share."""
    return Api(create_app(CORRIDOR, token=""))


@pytest.fixture
def faulty() -> Iterator[Api]:
    """A server whose environment fails on command."""
    FaultyEnv.go_on.clear()
    FaultyEnv.waiting.clear()
    FaultyEnv.open_ones = FaultyEnv.files_missing = 0
    yield Api(create_app(FAULTY, folder="/srv/secret"))
    FaultyEnv.go_on.set()


@pytest.fixture
def live() -> Iterator[str]:
    """The address of a corridor server on a real socket."""
    with Server(create_app(CORRIDOR, token=TOKEN)) as server:
        yield server.url


@pytest.fixture
def remote() -> Callable[..., RemoteEnv]:
    """Makes remote environments of an application in process: `remote(app, **kwargs)`."""

    def make(app: Any, **kwargs: Any) -> RemoteEnv:
        env_id = app.extensions["agentgyms"].factory.env_id
        transport = InProcessTransport({"http://server": app})
        kwargs = {"patience": HURRIED, "transport": transport, **kwargs}
        return RemoteEnv(env_id, url="http://server", **kwargs)

    return make


@pytest.fixture
def books() -> Iterator[Books]:
    """A server of ledgers on a real socket, of one test: nothing left behind meets another one."""
    with kept() as served:
        yield served
