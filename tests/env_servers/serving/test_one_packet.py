"""A reply leaves in one packet, head and body, whatever its kind."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from server_faults import CORRIDOR, Api

from env_servers import Server, create_app

APP = create_app(CORRIDOR, token="")


@pytest.fixture(scope="module")
def address() -> Iterator[tuple[str, int]]:
    with Server(APP) as server:
        host, _, port = server.url.removeprefix("http://").partition(":")
        yield host, int(port)


def _request(method: str, path: str, body: bytes = b"") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Content-Type: application/json\r\n\r\n".encode() + body


def _packet(address: tuple[str, int], request: bytes) -> bytes:
    with socket.create_connection(address, timeout=5) as link:
        link.sendall(request)
        return link.recv(2**20)


@pytest.mark.parametrize(
    ("method", "path", "status", "end"),
    [
        ("GET", "/v1/info", 200, b"}}"),
        ("GET", "/v1/tasks", 200, b"}"),
        ("HEAD", "/healthz", 200, b"\r\n\r\n"),
        ("GET", "/nowhere", 404, b"}}"),
        ("POST", "/v1/sessions/none/step", 422, b"}}"),
    ],
    ids=str,
)
def test_replies_and_errors(address, method, path, status, end):
    packet = _packet(address, _request(method, path))
    assert packet.startswith(f"HTTP/1.1 {status} ".encode())
    head, _, body = packet.partition(b"\r\n\r\n")
    assert packet.endswith(end)
    if method != "HEAD":
        assert f"Content-Length: {len(body)}".encode() in head


def test_a_reply_without_a_body(address):
    path = Api(APP).open()
    packet = _packet(address, _request("DELETE", path))
    assert packet.startswith(b"HTTP/1.1 204 ")
    assert packet.endswith(b"\r\n\r\n")


def test_an_error_before_the_application(address):
    packet = _packet(address, b"GET /healthz HTTP/1.1\r\nTransfer-Encoding: junk\r\n\r\n")
    assert packet.startswith(b"HTTP/1.1 501 ")
    assert b"\r\n\r\nNot Implemented" in packet


def test_requests_sent_together_are_answered_in_order(address):
    path = Api(APP).begun()
    steps = [_request("POST", f"{path}/step", b'{"action":"left","turn":%d}' % n) for n in (1, 2)]
    with socket.create_connection(address, timeout=5) as link:
        link.sendall(b"".join([*steps, _request("GET", path), _request("DELETE", path)]))
        replies = b""
        while b"HTTP/1.1 204 " not in replies:
            replies += link.recv(2**16)
    turns = [replies.index(b'"turn":%d' % n) for n in (1, 2)]
    assert turns == sorted(turns)
    assert replies.count(b"HTTP/1.1 200 ") == 3
