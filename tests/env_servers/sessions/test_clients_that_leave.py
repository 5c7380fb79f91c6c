"""Clients that leave before they are answered: what they wanted is given up, nothing is left."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, Final

import pytest
from server_faults import FAULTY, Api, Clock, FaultyEnv, code

from agentgyms.core.errors import ServerUnavailable
from agentgyms.remote import Patience, RemoteEnv
from env_servers import Server, create_app
from env_servers.sessions import requester

SLOW: Final = {"kwargs": {"broken": "slow making"}}
LIMIT_S: Final = 30.0


@pytest.fixture
def served(faulty: Api, clock: Clock) -> Iterator[Server]:
    """A server of an environment that waits on command; `faulty` calls the same application."""
    faulty.app = create_app(FAULTY, token="", clock=clock)
    with Server(faulty.app, threads=4) as server:
        yield server
        FaultyEnv.go_on.set()


def until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def sessions(api: Api) -> Any:
    return api.app.extensions["agentgyms"].sessions


def send(server: Server, path: str, body: Any, method: str = "POST") -> socket.socket:
    """Send a request and return its connection, on which the reply is still to come."""
    host, _, port = server.url.removeprefix("http://").rpartition(":")
    connection = socket.create_connection((host, int(port)), timeout=LIMIT_S)
    content = json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    connection.sendall(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
    return connection


def send_and_leave(server: Server, path: str, body: Any) -> None:
    """Send a request, leave as soon as it is being done, and wait until the server knows."""
    FaultyEnv.waiting.clear()
    with closing(send(server, path, body)):
        assert FaultyEnv.waiting.wait(LIMIT_S)
        [channel] = server._waitress.active_channels.values()
    until(lambda: channel.left_at is not None)


def working(server: Server) -> int:
    """Return how many threads answer a request."""
    return int(server._waitress.task_dispatcher.active_count)


def idle(server: Server) -> bool:
    return not (working(server) or server._service.waiting())


def test_a_session_that_nobody_was_told_of_ends_soon_and_once(served, faulty, clock):
    send_and_leave(served, "/v1/sessions", SLOW | {"request_id": "r"})
    FaultyEnv.go_on.set()
    until(lambda: idle(served))
    assert (len(sessions(faulty)), FaultyEnv.open_ones) == (1, 1)
    clock.now += 9
    assert sessions(faulty).sweep() == 0, "the client may ask again"
    clock.now += 2
    sessions(faulty).sweep()
    until(lambda: FaultyEnv.open_ones == 0)
    assert sum(s.value for s in _closed(faulty) if s.name.endswith("_total")) == 1
    assert faulty.post("/v1/sessions", SLOW | {"request_id": "r"})[0] == 201, "a late client"
    assert FaultyEnv.open_ones == 1


def _closed(api: Api) -> Any:
    return api.app.extensions["agentgyms"].metrics.closed.collect()[0].samples


def test_a_client_that_asks_again_keeps_its_session(served, faulty, clock):
    body = SLOW | {"request_id": "r"}
    send_and_leave(served, "/v1/sessions", body)
    again = threading.Thread(target=faulty.post, args=("/v1/sessions", body))
    again.start()
    FaultyEnv.go_on.set()
    again.join()
    until(lambda: idle(served))
    clock.now += 60
    assert sessions(faulty).sweep() == 0
    FaultyEnv.go_on.clear()
    send_and_leave(served, "/v1/batch/create", {"items": [SLOW | {"request_id": "q"}, SLOW]})
    FaultyEnv.go_on.set()
    until(lambda: idle(served))
    assert faulty.post("/v1/sessions", SLOW | {"request_id": "q"})[0] == 201
    clock.now += 60
    assert len(sessions(faulty)) == 2 or sessions(faulty).sweep() == 1
    assert faulty.post("/v1/sessions", SLOW | {"request_id": "q"})[0] == 201


def test_a_fork_that_nobody_was_told_of_ends_soon(served, faulty, clock, monkeypatch):
    path = faulty.begun()
    fork = FaultyEnv.fork

    def slowly(env: FaultyEnv) -> FaultyEnv:
        FaultyEnv.waiting.set()
        FaultyEnv.go_on.wait(LIMIT_S)
        return fork(env)

    monkeypatch.setattr(FaultyEnv, "fork", slowly)
    send_and_leave(served, f"{path}/fork", {})
    FaultyEnv.go_on.set()
    until(lambda: idle(served))
    assert len(sessions(faulty)) == 2
    clock.now += 11
    sessions(faulty).sweep()
    until(lambda: len(sessions(faulty)) == 1)
    assert faulty.get(path)[0] == 200


def test_the_client_that_gives_up_leaves_no_session(served, faulty, clock):
    patience = Patience(read_s=0.2, attempts=1)
    with pytest.raises(ServerUnavailable, match="no reply within"):
        RemoteEnv(FAULTY, url=served.url, patience=patience, broken="slow making")
    until(lambda: not served._waitress.active_channels)
    FaultyEnv.go_on.set()
    until(lambda: idle(served))
    clock.now += 11
    sessions(faulty).sweep()
    until(lambda: FaultyEnv.open_ones == 0)


def test_a_reset_that_nobody_waits_for_is_given_up(served, faulty, monkeypatch):
    path = faulty.open(broken="endless resetting")
    send_and_leave(served, f"{path}/reset", {"seed": 1})
    monkeypatch.setattr(requester, "GIVEN_UP_AFTER_S", 0.0)
    until(lambda: idle(served))
    assert code(faulty.get(path)) == (410, "session_expired")
    assert FaultyEnv.open_ones == 0


def test_a_reset_that_a_client_asks_for_again_goes_on(served, faulty, monkeypatch):
    path = faulty.open(broken="endless resetting")
    send_and_leave(served, f"{path}/reset", {"seed": 1})
    session = sessions(faulty)._open[path.rpartition("/")[2]]
    again = send(served, f"{path}/reset", {"seed": 1})
    until(lambda: session._waiting)
    monkeypatch.setattr(requester, "GIVEN_UP_AFTER_S", 0.0)
    time.sleep(0.1)
    assert working(served) == 2
    again.close()
    until(lambda: idle(served))


def test_a_batch_stops_when_its_client_leaves(served, faulty):
    paths = [faulty.begun() for _ in range(3)]
    names = [path.rpartition("/")[2] for path in paths]
    items = [{"session_id": name, "action": "wait", "turn": 1} for name in names]
    send_and_leave(served, "/v1/batch/step", {"items": items})
    FaultyEnv.go_on.set()
    until(lambda: idle(served))
    assert [faulty.get(path)[1]["turn"] for path in paths] == [1, 0, 0]


def test_what_waits_for_a_thread_is_not_begun_for_nobody(faulty):
    with Server(faulty.app, threads=1) as server:
        paths = [faulty.begun(), faulty.begun()]
        with closing(send(server, f"{paths[0]}/step", {"action": "wait", "turn": 1})):
            assert FaultyEnv.waiting.wait(LIMIT_S)
            second = send(server, f"{paths[1]}/step", {"action": "right", "turn": 1})
            until(lambda: server._service.waiting() == 1)
            second.close()
            until(lambda: len(server._waitress.active_channels) == 1)
            FaultyEnv.go_on.set()
            until(lambda: idle(server))
        assert [faulty.get(path)[1]["turn"] for path in paths] == [1, 0]


@pytest.mark.parametrize("batch", [False, True])
def test_who_ends_a_session_and_leaves_has_ended_it(faulty, batch):
    with Server(faulty.app, threads=1) as server:
        paths = [faulty.begun(), faulty.begun()]
        with closing(send(server, f"{paths[0]}/step", {"action": "wait", "turn": 1})):
            assert FaultyEnv.waiting.wait(LIMIT_S)
            if batch:
                items = {"items": [{"session_id": paths[1].rpartition("/")[2]}]}
                second = send(server, "/v1/batch/close", items)
            else:
                second = send(server, paths[1], {}, "DELETE")
            until(lambda: server._service.waiting() == 1)
            second.close()
            until(lambda: len(server._waitress.active_channels) == 1)
            FaultyEnv.go_on.set()
            until(lambda: idle(server))
        assert len(sessions(faulty)) == 1


def test_who_waits_for_a_session_and_leaves_holds_no_thread(served, faulty):
    path = faulty.begun()
    with closing(send(served, f"{path}/step", {"action": "wait", "turn": 1})):
        assert FaultyEnv.waiting.wait(LIMIT_S)
        waiting = [send(served, f"{path}/step", {"action": "x", "turn": 1}) for _ in range(3)]
        until(lambda: working(served) == 4)
        for connection in waiting:
            connection.close()
        until(lambda: working(served) == 1)
        FaultyEnv.go_on.set()
    until(lambda: idle(served))
    assert faulty.get(path)[1]["turn"] == 1


def test_no_path_is_logged_when_a_client_leaves(served, faulty, caplog):
    path = faulty.begun()
    send_and_leave(served, f"{path}/step", {"action": "wait", "turn": 1})
    FaultyEnv.go_on.set()
    until(lambda: idle(served))
    assert faulty.step(path, "wait", 1)[0] == 200, "it asks again"
    told = [r.getMessage() for r in caplog.records if r.levelname in ("WARNING", "ERROR")]
    assert not [text for text in told if path.rpartition("/")[2] in text]
