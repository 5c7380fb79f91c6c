"""Clients without the token: what they can make a server keep, counted in requests and bytes."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import Any, Final

import pytest
import requests
from server_faults import CORRIDOR, TOKEN

from agentgyms.serving import connection_limits
from agentgyms.serving.channel import MOST_QUEUED
from env_servers import Server, create_app
from env_servers.http.openapi.document import document_text

DESCRIPTION: Final = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
REPLY: Final = len(document_text()) + 1000
BEARER: Final = {"Authorization": f"Bearer {TOKEN}"}
LIMIT_S: Final = 30.0


@pytest.fixture
def server() -> Iterator[Server]:
    """A server on a system that keeps little for it: what is not read stays with the server."""
    with Server(create_app(CORRIDOR, token=TOKEN)) as running:
        running._waitress.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        yield running


@pytest.fixture
def connect(server) -> Iterator[Callable[[], socket.socket]]:
    """Connects with a small buffer; connections are closed in the end."""
    host, _, port = server.url.removeprefix("http://").rpartition(":")
    with ExitStack() as opened:

        def one() -> socket.socket:
            connection = opened.enter_context(socket.socket())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.settimeout(LIMIT_S)
            connection.connect((host, int(port)))
            return connection

        yield one


def channels(server: Server) -> list[Any]:
    return list(server._waitress.active_channels.values())


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def received(server: Server) -> int:
    """Return how many bytes of bodies have come in, on all connections."""
    coming = [channel.request for channel in channels(server)]
    return sum(request.body_bytes_received for request in coming if request is not None)


def answered(server: Server, path: str) -> int:
    """Return how many requests of a route the application has answered."""
    counts = server._service.metrics.requests.collect()[0].samples
    return int(sum(s.value for s in counts if s.labels.get("route") == path and "_total" in s.name))


def test_who_reads_nothing_gets_one_reply(server, connect):
    crowd = [connect() for _ in range(80)]
    for connection in crowd:
        connection.sendall(DESCRIPTION * MOST_QUEUED)
    with requests.Session() as ours:
        for _ in range(37):
            reply = ours.post(f"{server.url}/v1/sessions", headers=BEARER, timeout=LIMIT_S)
            assert reply.status_code == 201
        until(lambda: not server._waitress.task_dispatcher.queue)
        assert all(channel.total_outbufs_len <= REPLY for channel in channels(server))
        assert answered(server, "/openapi.json") == 80


def test_who_reads_gets_every_reply_in_order(server, connect):
    connection = connect()
    connection.sendall(DESCRIPTION * (MOST_QUEUED - 1) + DESCRIPTION.replace(b"openapi", b"x"))
    replies = b""
    while replies.count(b"HTTP/1.1 ") < MOST_QUEUED or not replies.endswith(b"}}"):
        replies += connection.recv(2**16)
    assert replies.count(b"HTTP/1.1 200 ") == MOST_QUEUED - 1
    assert replies.rindex(b"HTTP/1.1 404 ") > replies.rindex(b"HTTP/1.1 200 ")


def test_who_sends_many_requests_at_once_is_cut_off(server, connect):
    crowd = [connect() for _ in range(80)]
    for connection in crowd:
        connection.sendall(DESCRIPTION * (43_000 // len(DESCRIPTION)))
    assert requests.get(f"{server.url}/v1/info", headers=BEARER, timeout=LIMIT_S).ok
    for connection in crowd:
        with suppress(ConnectionError):
            while connection.recv(2**16):
                pass
    until(lambda: len(channels(server)) <= 1)
    assert answered(server, "/openapi.json") <= 80 * MOST_QUEUED


@pytest.mark.parametrize("sent", [b"", b"GET /heal", DESCRIPTION * MOST_QUEUED], ids=repr)
def test_strangers_have_so_many_places_and_no_more(server, connect, sent):
    with requests.Session() as ours:
        ours.headers.update(BEARER)
        assert ours.get(f"{server.url}/v1/info", timeout=LIMIT_S).ok
        crowd = []
        for _ in range(connection_limits.MOST_STRANGERS + 60):
            crowd.append(connect())
            crowd[-1].sendall(sent)
        late = connect()
        late.sendall(DESCRIPTION)
        assert late.recv(20).startswith(b"HTTP/1.1 200 ")
        until(lambda: len(channels(server)) <= connection_limits.MOST_STRANGERS + 1)
        assert ours.get(f"{server.url}/v1/info", timeout=LIMIT_S).ok
        [known] = [channel for channel in channels(server) if channel.known]
        assert known.server is server._waitress


def test_a_body_without_the_token_is_not_kept(server, connect):
    head = b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    bearer = f"Authorization: Bearer {TOKEN}\r\n".encode()
    half = bytes(500_000)
    stranger, ours = connect(), connect()
    for connection, token in ((stranger, b""), (ours, bearer)):
        connection.sendall(head + token + b"Content-Length: 1000000\r\n\r\n" + half)
    until(lambda: received(server) == 1_000_000)
    held = {channel.known: channel.held for channel in channels(server)}
    assert held == {False: 0, True: 500_000}
    for connection, status in ((stranger, b"401"), (ours, b"400")):
        connection.sendall(half)
        assert connection.recv(12).endswith(status)


@pytest.mark.parametrize(
    "length", [b"Content-Length: 2000000\r\n\r\n", b""], ids=["told", "chunks"]
)
def test_a_body_that_is_too_long_is_not_kept(server, connect, length):
    head = b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    head += f"Authorization: Bearer {TOKEN}\r\n".encode()
    size = 2_000_000
    body = bytes(size) if length else b"%x\r\n" % size + bytes(size) + b"\r\n0\r\n\r\n"
    head += length or b"Transfer-Encoding: chunked\r\n\r\n"
    connection = connect()
    connection.sendall(head + body[:-1])
    until(lambda: received(server) == len(body) - 1)
    assert channels(server)[0].held == 0
    connection.sendall(body[-1:])
    assert connection.recv(12).endswith(b"413")


@pytest.mark.parametrize(
    "line", [b"5;" + b"x" * 40_000, b"0\r\n" + b"x" * 40_000], ids=["size", "end"]
)
def test_a_line_between_chunks_has_an_end(server, connect, line):
    connection = connect()
    connection.sendall(b"POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + line)
    assert connection.recv(12).endswith(b"400")


def test_what_all_hold_together_is_bounded(server, connect, monkeypatch):
    """Bodies that do not go on, from clients with the token: the longest silent are closed."""
    head = f"POST /v1/sessions HTTP/1.1\r\nAuthorization: Bearer {TOKEN}\r\n".encode()
    for number in range(1, 11):
        connect().sendall(head + b"Content-Length: 1000000\r\n\r\n" + bytes(500_000))
        until(lambda number=number: received(server) == number * 500_000)
    first, *_, last = channels(server)
    monkeypatch.setattr(connection_limits, "MOST_HELD_BYTES", 2_000_000)
    until(lambda: sum(channel.held for channel in channels(server)) == 2_000_000)
    assert last in channels(server)
    assert first not in channels(server)
