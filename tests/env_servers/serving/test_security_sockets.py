"""Attacks on a real socket: what each is answered with, and that others are served on."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
import requests
from server_faults import CORRIDOR, TOKEN, FaultyEnv

from agentgyms.serving.server import Server
from env_servers import create_app

HOST: Final = b"Host: localhost\r\n"
BEARER: Final = f"Authorization: Bearer {TOKEN}\r\n".encode()
JSON: Final = b"Content-Type: application/json\r\n"
CREATE: Final = b"POST /v1/sessions HTTP/1.1\r\n" + HOST + BEARER + JSON


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(create_app(CORRIDOR, token=TOKEN, max_sessions=2000)) as running:
        yield running


def _connect(server: Server) -> socket.socket:
    host, _, port = server.url.removeprefix("http://").rpartition(":")
    return socket.create_connection((host, int(port)), timeout=5)


def _exchange(server: Server, request: bytes) -> bytes:
    """Send bytes and return all that comes back until the server closes."""
    with closing(_connect(server)) as connection:
        received = b""
        try:
            connection.sendall(request)
            while chunk := connection.recv(1 << 16):
                received += chunk
        except ConnectionError:
            pass  # it closed while there was more to read
        return received


def _get(path: bytes, *headers: bytes, method: bytes = b"GET") -> bytes:
    return b"%s %s HTTP/1.1\r\nConnection: close\r\n%s\r\n" % (method, path, b"".join(headers))


def _post(body: bytes, *headers: bytes) -> bytes:
    return CREATE + b"Connection: close\r\n" + b"".join(headers) + b"\r\n" + body


def _status(reply: bytes) -> int:
    return int(reply.split(b" ", 2)[1]) if reply else 0


# --- what reaches the socket ---------------------------------------------------------------------

GZIPPED: Final = gzip.compress(b'{"kwargs": {}, "request_id": "' + b" " * 10_000_000 + b'"}')
CLOSED: Final = 0
EARLY: Final = -413  # the server closes before all is sent, and its reply may be lost with that

ON_THE_WIRE: Final = {
    # not HTTP, or too much of it
    "noise": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n", 400),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 404),
    "a long header": (_get(b"/healthz", HOST, b"X: " + b"a" * 300_000 + b"\r\n"), 431),
    "a long address": (_get(b"/" + b"a" * 300_000, HOST), 431),
    "thousands of headers": (_get(b"/healthz", HOST, b"X: a\r\n" * 5_000), 200),
    "a NUL in a header": (_get(b"/v1/info", HOST, BEARER, b"X: \0\r\n"), 400),
    "a blank before the colon": (_get(b"/v1/info", HOST, BEARER.replace(b":", b" :")), 400),
    # lengths that lie
    "two lengths": (_post(b"{}x", b"Content-Length: 2\r\nContent-Length: 3\r\n"), 400),
    "a negative length": (_post(b"{}", b"Content-Length: -1\r\n"), 400),
    "a signed length": (_post(b"{}", b"Content-Length: +2\r\n"), 400),
    "a length that is no number": (_post(b"{}", b"Content-Length: 0x2\r\n"), 400),
    "a length of 30 digits": (_post(b"{}", b"Content-Length: " + b"9" * 30 + b"\r\n"), 413),
    "a length of 5000 digits": (_post(b"{}", b"Content-Length: " + b"9" * 5000 + b"\r\n"), 400),
    "100 MB announced": (_post(b"{}", b"Content-Length: 100000000\r\n"), 413),
    "20 MB in chunks": (
        _post(
            (b"10000\r\n" + b" " * 0x10000 + b"\r\n") * 320 + b"0\r\n\r\n",
            b"Transfer-Encoding: chunked\r\n",
        ),
        EARLY,
    ),
    "a chunk's size that is no number": (
        _post(b"zz\r\n{}\r\n0\r\n\r\n", b"Transfer-Encoding: chunked\r\n"),
        400,
    ),
    "an unknown transfer encoding": (_post(b"{}", b"Transfer-Encoding: xchunked\r\n"), 501),
    "2 MB of body": (_post(b" " * 2_000_000, b"Content-Length: 2000000\r\n"), 413),
    "a gzip bomb": (
        _post(
            GZIPPED,
            b"Content-Encoding: gzip\r\n",
            b"Content-Length: %d\r\n" % len(GZIPPED),
        ),
        415,
    ),
    # paths
    "up from /v1": (_get(b"/v1/../healthz", HOST), 401),
    "up to /v1": (_get(b"/healthz/../v1/info", HOST, BEARER), 404),
    "an encoded slash, no token": (_get(b"/v1%2finfo", HOST), 401),
    "an address that is none": (_get(b"http://[bad/", HOST), 400),
    "encoded dots": (_get(b"/%2e%2e/%2e%2e/etc/passwd", HOST), 404),
    "two slashes, no token": (_get(b"//v1/info", HOST), 401),
    "an absolute address, no token": (_get(b"http://localhost/v1/info", HOST), 401),
    "a NUL in the path": (_get(b"/v1/info%00", HOST, BEARER), 404),
    "bytes that are no text": (_get(b"/\xff\xfe", HOST), 400),
    "encoded bytes that are no text": (_get(b"/v1/sessions/%ff%fe", HOST, BEARER), 404),
    "a file instead of a session": (
        _get(b"/v1/sessions/..%2f..%2fetc%2fpasswd", HOST, BEARER),
        404,
    ),
    "a file of the page": (_get(b"/play/..%2froutes.py", HOST, BEARER), 404),
    "a line break in the path": (_get(b"/v1/sessions/x%0d%0aSet-Cookie:%20a=b", HOST, BEARER), 404),
    # methods
    "TRACE": (_get(b"/v1/info", HOST, BEARER, method=b"TRACE"), 405),
    "CONNECT": (_get(b"localhost:22", HOST, method=b"CONNECT"), 404),
    "PUT": (_get(b"/v1/info", HOST, BEARER, method=b"PUT"), 405),
    "OPTIONS, no token": (_get(b"/v1/info", HOST, method=b"OPTIONS"), 401),
    "HEAD, no token": (_get(b"/v1/info", HOST, method=b"HEAD"), 401),
    "a method of control characters": (_get(b"/v1/info", HOST, method=b"G\0T"), 400),
    # who asks
    "a header with underscores": (_get(b"/v1/info", HOST, BEARER.replace(b"A", b"HTTP_A", 1)), 401),
    "two tokens": (_get(b"/v1/info", HOST, BEARER, b"Authorization: Bearer no\r\n"), 401),
    "another host": (_get(b"/v1/info", b"Host: evil.example\r\n"), 401),
    "a host that is none": (_get(b"/v1/info", b"Host: <script>\r\n", BEARER), 200),
}


@pytest.mark.parametrize("name", ON_THE_WIRE)
def test_attacks_on_the_wire(server, name, caplog):
    request, expected = ON_THE_WIRE[name]
    reply = _exchange(server, request)
    allowed = {-expected, CLOSED} if expected < 0 else {expected}
    assert _status(reply) in allowed, reply[:300]
    head, _, _ = reply.partition(b"\r\n\r\n")
    assert b"set-cookie" not in head.lower()
    assert b"access-control" not in head.lower()
    for leak in (b"Traceback", b".py", b"/root", b"/usr", TOKEN.encode(), b"waitress"):
        assert leak not in reply
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
    assert requests.get(f"{server.url}/healthz", timeout=60).status_code == 200


def test_a_request_inside_another_one_is_not_answered(server):
    """Transfer-Encoding counts where both lengths are given, and the connection ends with it."""
    hidden = b"GET /v1/info HTTP/1.1\r\n" + HOST + BEARER + b"\r\n"
    body = b"2\r\n{}\r\n0\r\n\r\n" + hidden
    reply = _exchange(
        server,
        CREATE + b"Content-Length: %d\r\n" % len(body) + b"Transfer-Encoding: chunked\r\n"
        b"Connection: close\r\n\r\n" + body,
    )
    assert reply.count(b"HTTP/1.1 ") == 1
    assert b"max_sessions" not in reply


def test_what_a_proxy_would_say_is_not_believed(server):
    forwarded = (
        b"X-Forwarded-Proto: https\r\nX-Forwarded-Host: evil.example\r\nForwarded: host=e\r\n"
    )
    reply = _exchange(server, _get(b"/", HOST, forwarded, BEARER))
    assert _status(reply) == 302
    assert b"evil" not in reply


# --- places and threads --------------------------------------------------------------------------


def test_those_who_send_slowly_hold_no_thread():
    with Server(create_app(CORRIDOR, token=TOKEN), threads=1) as server:
        slow = [_connect(server) for _ in range(20)]
        beginnings = (b"GET /heal", CREATE, CREATE + b"Content-Length: 100\r\n\r\n{")
        for number, connection in enumerate(slow):
            connection.sendall(beginnings[number % 3])
        begun = time.monotonic()
        assert _status(_exchange(server, _get(b"/v1/info", HOST, BEARER))) == 200
        assert time.monotonic() - begun < 2
        for connection in slow:
            connection.close()


def test_probes_are_answered_while_all_threads_are_busy(faulty):
    FaultyEnv.waiting.clear()
    path = faulty.begun()
    with Server(faulty.app, threads=1) as server:
        url = f"{server.url}{path}/step"
        busy = threading.Thread(
            target=requests.post, args=(url,), kwargs={"json": {"action": "wait", "turn": 1}}
        )
        busy.start()
        try:
            assert FaultyEnv.waiting.wait(60)
            for probe in ("/healthz", "/readyz", "/metrics"):
                assert requests.get(server.url + probe, timeout=60).status_code == 200
        finally:
            FaultyEnv.go_on.set()
            busy.join()


def test_a_crowd_of_idle_connections_keeps_nobody_out():
    with Server(create_app(CORRIDOR, token=TOKEN, max_sessions=1)) as server:
        ours = requests.Session()
        crowd = []
        for number in range(160):  # there are places for 104
            crowd.append(_connect(server))
            crowd[-1].sendall(_get(b"/healthz", HOST).replace(b"Connection: close\r\n", b""))
            if number % 10 == 0:
                assert ours.get(f"{server.url}/healthz", timeout=60).status_code == 200
        assert _status(_exchange(server, _get(b"/v1/info", HOST, BEARER))) == 200
        for connection in (*crowd, ours):
            connection.close()


def _trickle(connection: socket.socket, until: float) -> None:
    while time.monotonic() < until:
        connection.sendall(b"X: a\r\n")
        time.sleep(0.05)


@pytest.mark.slow
def test_connections_that_do_not_go_on_are_closed():
    with Server(create_app(CORRIDOR, token=TOKEN), request_s=1) as server:
        patient = requests.Session()
        assert patient.get(f"{server.url}/healthz").status_code == 200
        beginnings = (b"", b"GET /heal", CREATE, CREATE + b"Content-Length: 100\r\n\r\n{")
        chunked = CREATE + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{"
        stalled = [_connect(server) for _ in (*beginnings, chunked)]
        for connection, beginning in zip(stalled, (*beginnings, chunked), strict=True):
            connection.sendall(beginning)
        trickling = _connect(server)
        trickling.sendall(b"GET /healthz HTTP/1.1\r\n")
        begun = time.monotonic()
        with pytest.raises(ConnectionError):
            _trickle(trickling, until=begun + 8)
        for connection in stalled:
            connection.settimeout(8)
            assert connection.recv(10) == b""
            connection.close()
        trickling.close()
        assert patient.get(f"{server.url}/healthz").status_code == 200, "one between two requests"
        patient.close()


@pytest.mark.slow
def test_memory_is_bounded_while_bodies_come_in():
    """Bodies without the token are not kept."""
    with Server(create_app(CORRIDOR, token=TOKEN)) as server:
        half = b"POST /v1/sessions HTTP/1.1\r\nContent-Length: 8000000\r\n\r\n" + b" " * 7_000_000
        before = _resident_kib()
        senders = [_connect(server) for _ in range(40)]
        for connection in senders:
            connection.sendall(half)
        assert _resident_kib() - before < 20_000
        assert requests.get(f"{server.url}/healthz", timeout=60).status_code == 200
        for connection in senders:
            connection.close()


def _resident_kib() -> int:
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * 4
