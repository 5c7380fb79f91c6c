"""Wrong tokens are answered late: no thread is held, and who has the token waits for nobody."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Final

import pytest
import requests
from server_faults import CORRIDOR, TOKEN, Clock

from agentgyms.serving import channel, guesses
from agentgyms.serving.guesses import Guesses
from env_servers import Server, create_app

LIMIT_S: Final = 30.0


def test_each_wrong_token_of_an_address_waits_longer():
    clock = Clock()
    tried = Guesses(clock)
    assert [tried.delay_s("10.0.0.1") for _ in range(9)] == [0, 0, 0, 1, 2, 4, 8, 8, 8]
    assert tried.delay_s("10.0.0.2") == 0, "another address"
    for _ in range(2000):
        assert tried.delay_s("10.0.0.1") == 8
    clock.now += guesses.FORGOTTEN_AFTER_S + 1
    assert tried.delay_s("10.0.0.1") == 0


def test_a_client_of_ipv6_is_its_network():
    tried = Guesses(Clock())
    delays = [tried.delay_s(f"2001:db8:0:1::{i:x}") for i in range(5)]
    assert delays == [0, 0, 0, 1, 2]
    assert tried.delay_s("2001:db8:0:2::1") == 0
    assert [tried.delay_s(f"::ffff:10.0.0.{i}") for i in range(5)] == [0] * 5
    assert [tried.delay_s("no address") for _ in range(4)][-1] == 1
    assert tried.delay_s("fe80::1%eth0") == 0


def test_addresses_take_bounded_memory():
    tried = Guesses(Clock())
    for number in range(guesses.MOST_ADDRESSES + 100):
        tried.delay_s(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
    assert len(tried._wrong) == guesses.MOST_ADDRESSES


class Waiting:
    """Time as the connections see it, which passes when a test says so."""

    def __init__(self) -> None:
        self.now = time.monotonic()

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Waiting:
    passing = Waiting()
    monkeypatch.setattr(channel, "time", passing)
    return passing


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(create_app(CORRIDOR, token=TOKEN), threads=1) as running:
        yield running


@pytest.fixture
def connect(server: Server) -> Iterator[Callable[[], socket.socket]]:
    host, _, port = server.url.removeprefix("http://").rpartition(":")
    with ExitStack() as opened:
        yield lambda: opened.enter_context(
            socket.create_connection((host, int(port)), timeout=LIMIT_S)
        )


def guess(token: str) -> bytes:
    head = f"GET /v1/info HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
    return head.encode()


def late(server: Server) -> list[Any]:
    return [c for c in server._waitress.active_channels.values() if c._late is not None]


def until(condition: Callable[[], Any]) -> None:
    deadline = time.perf_counter() + LIMIT_S
    while not condition():
        assert time.perf_counter() < deadline
        time.sleep(0.005)


def test_who_guesses_waits_and_others_do_not(server, connect, clock):
    """Twenty who guess, on a server with one thread: who has the token is answered at once."""
    crowd = [connect() for _ in range(20)]
    for number, connection in enumerate(crowd):
        connection.sendall(guess(f"guess-{number}"))
    until(lambda: len(late(server)) == 20 - guesses.FREE)
    for _ in range(50):
        headers = {"Authorization": f"Bearer {TOKEN}"}
        assert requests.get(f"{server.url}/v1/info", headers=headers, timeout=LIMIT_S).ok
    assert len(late(server)) == 20 - guesses.FREE
    clock.now += guesses.LONGEST_S + 1
    for connection in crowd:
        assert connection.recv(12) == b"HTTP/1.1 401"
    assert late(server) == []


def test_what_is_asked_meanwhile_waits_too(server, connect, clock):
    for _ in range(guesses.FREE):
        requests.get(f"{server.url}/v1/info", headers={"Authorization": "Bearer no"}, timeout=60)
    connection = connect()
    probe = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    connection.sendall(guess("no") + guess("no again") + probe)
    until(lambda: late(server))
    clock.now += 2
    until(lambda: late(server) and late(server)[0]._late[0] > clock.now)
    clock.now += 3
    received = b""
    while chunk := connection.recv(2**16):
        received += chunk
    assert [part[:3] for part in received.split(b"HTTP/1.1 ")[1:]] == [b"401", b"401", b"200"]


@pytest.mark.parametrize("path", ["/play"])
def test_a_guess_in_the_form_is_one_and_its_connection_may_end(server, connect, clock, path):
    body = b"token=no"
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    head += "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 8\r\n\r\n"
    for _ in range(guesses.FREE):
        connection = connect()
        connection.sendall(head.encode() + body)
        assert connection.recv(12).endswith(b"401")
    connection = connect()
    connection.sendall(head.encode() + body)
    until(lambda: late(server))
    clock.now += 2
    received = b""
    while chunk := connection.recv(2**16):
        received += chunk
    assert received.startswith(b"HTTP/1.1 401")
    assert received.endswith(b"</html>\n")


def test_no_token_is_no_guess(server):
    for _ in range(3 * guesses.FREE):
        assert requests.get(f"{server.url}/v1/info", timeout=LIMIT_S).status_code == 401
    assert late(server) == []


def test_who_leaves_before_the_answer_leaves_nothing(server, connect, clock):
    crowd = [connect() for _ in range(8)]
    for connection in crowd:
        connection.sendall(guess("no"))
    until(lambda: len(late(server)) == 8 - guesses.FREE)
    for connection in crowd:
        connection.close()
    until(lambda: not server._waitress.active_channels)
    clock.now += 60
    assert requests.get(f"{server.url}/healthz", timeout=LIMIT_S).ok
