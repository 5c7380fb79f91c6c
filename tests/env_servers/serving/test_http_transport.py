"""`HttpTransport` on sockets: what it sends, keeps, shares and says when there is no reply."""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from agentgyms.core.errors import ServerUnavailable
from agentgyms.core.http_clients import authorities
from agentgyms.remote import HttpTransport, Reply

TIMEOUT_S = (5.0, 5.0)
LONG = b"x" * 300_000


class _Echo(BaseHTTPRequestHandler):
    """Answers with what it was sent."""

    protocol_version = "HTTP/1.1"
    connections: set[Any] = set()
    together = threading.Barrier(1)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.connections.add(self.client_address)
        if self.path == "/together":
            self.together.wait(10)
        self.send_response(307 if self.path == "/moved" else 200)
        self.send_header("Location", "/elsewhere")
        self.send_header("X-Request", f"{self.command} {self.path}")
        self.send_header("X-Authorization", self.headers.get("Authorization", "none"))
        self.send_header("X-Encoding", self.headers.get("Accept-Encoding", "none"))
        if self.path == "/chunks":
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
            return
        if self.path == "/last":
            self.send_header("Connection", "close")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_DELETE = do_POST

    def log_message(self, *_: Any) -> None:
        pass


class _Quiet(ThreadingHTTPServer):
    request_queue_size = 64

    def handle_error(self, *_: Any) -> None:
        """Say nothing of clients that go away."""


@contextlib.contextmanager
def _serving(wrap: Callable[[socket.socket], socket.socket] = lambda one: one) -> Iterator[int]:
    server = _Quiet(("127.0.0.1", 0), _Echo)
    server.daemon_threads = True
    server.socket = wrap(server.socket)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    _Echo.connections.clear()
    yield server.server_port
    server.shutdown()
    server.server_close()


@pytest.fixture
def url() -> Iterator[str]:
    with _serving() as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def transport() -> Iterator[HttpTransport]:
    made = HttpTransport()
    yield made
    made.close()


def _send(
    transport: HttpTransport, url: str, body: bytes | None = b"hello", **kwargs: Any
) -> Reply:
    kwargs = {"method": "POST", "headers": {}, "timeout_s": TIMEOUT_S, **kwargs}
    return transport.send(url=url, body=body, **kwargs)


def test_replies_of_every_kind(transport, url):
    for path, body, expected in (
        ("/some?a=1&b=%20", b"hello", b"hello"),
        ("/long", LONG, LONG),
        ("/empty", None, b""),
        ("/chunks", None, b"abcde"),
        ("/moved", b"x", b"x"),
    ):
        reply = _send(transport, url + path, body)
        assert reply.body == expected
        assert reply.headers.get("x-request") == f"POST {path}"
        assert reply.status == (307 if path == "/moved" else 200)
    assert "X-REQUEST" in reply.headers
    assert _send(transport, url, method="DELETE").headers.get("X-Request") == "DELETE /"
    assert len(_Echo.connections) == 1


def test_nothing_compressed_is_asked_for(transport, url):
    assert _send(transport, url).headers.get("X-Encoding") == "identity"


def test_a_name_in_the_address_is_told_unless_there_is_a_token(transport, url):
    named = url.replace("http://", "http://me:p%40ss@")
    told = _send(transport, named).headers.get("X-Authorization")
    assert told == "Basic bWU6cEBzcw=="
    bearer = {"Authorization": "Bearer s3cret-tøken"}
    told = _send(transport, named, headers=bearer).headers.get("X-Authorization")
    assert told == bearer["Authorization"]


def test_a_connection_that_the_server_ends_is_not_used_again(transport, url):
    for _ in range(3):
        assert _send(transport, url + "/last").body == b"hello"
    assert len(_Echo.connections) == 3
    assert not any(transport._idle.values())


def test_threads_share_a_transport_but_no_connection(transport, url):
    num_threads = 16
    _Echo.together = threading.Barrier(num_threads)
    bodies = [str(i).encode() * 1000 for i in range(num_threads)]
    with ThreadPoolExecutor(num_threads) as pool:
        replies = list(pool.map(lambda body: _send(transport, url + "/together", body), bodies))
    assert [reply.body for reply in replies] == bodies
    assert len(_Echo.connections) == num_threads
    _Echo.together = threading.Barrier(1)
    _send(transport, url)
    assert len(_Echo.connections) == num_threads


def test_a_forked_process_opens_connections_of_its_own(transport, url):
    _send(transport, url)
    [(_, parents)] = transport._idle.items()
    child = os.fork()
    if child == 0:
        ours = _send(transport, url, b"child").body == b"child"
        apart = len(transport._idle) == 2
        transport.close()
        os._exit(0 if ours and apart and parents[0].sock is not None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert _send(transport, url).body == b"hello"
    assert len(_Echo.connections) == 2


def test_a_request_is_one_packet():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port, got = listening.getsockname()[1], []

        def answer() -> None:
            peer, _ = listening.accept()
            with peer:
                got.append(peer.recv(65536))
                peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        transport = HttpTransport()
        _send(transport, f"http://127.0.0.1:{port}/step", b"the body")
        thread.join(5)
        transport.close()
    assert got[0].startswith(b"POST /step HTTP/1.1\r\n")
    assert got[0].endswith(b"\r\n\r\nthe body")


def test_a_forgotten_transport_closes_its_connections(url):
    transport = HttpTransport()
    _send(transport, url)
    [[connection]] = transport._idle.values()
    del transport
    gc.collect()
    assert connection.sock is None


def test_a_closed_transport_connects_again(transport, url):
    for _ in range(2):
        assert _send(transport, url).body == b"hello"
        transport.close()
    assert len(_Echo.connections) == 2


@pytest.mark.parametrize(
    ("replies", "reason"),
    [
        ([], "closed connection without response"),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"], "IncompleteRead"),
        ([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfive\r\n"], "IncompleteRead|five"),
        ([b"SSH-2.0-OpenSSH\r\n"], "SSH"),
        ([b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 200], "100 headers"),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 30 + b"\r\n\r\n"], "int"),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 17 + b"\r\n\r\n"], "MemoryError"),
    ],
    ids=["nothing", "half", "chunks", "ssh", "headers", "endless", "huge"],
)
def test_what_is_no_reply(transport, replies, reason):
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            peer, _ = listening.accept()
            with peer:
                peer.recv(65536)
                for reply in replies:
                    peer.sendall(reply)

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(ServerUnavailable, match=reason):
            _send(transport, f"http://127.0.0.1:{listening.getsockname()[1]}")
        thread.join(5)
    assert not any(transport._idle.values())


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("http://", "names no host"),
        ("http://127.0.0.1:99999/", "(?i)port"),
        ("http://[::1/", "IPv6"),
        ("http://no-such-host.invalid/", "(?i)name|resolution|temporary"),
        ("http://127.0.0.1:1/a path", "control characters|refused"),
        (f"http://{'a' * 70}.b/", "(?i)label|name"),
    ],
)
def test_addresses_where_nobody_can_be(transport, address, reason):
    with pytest.raises(ServerUnavailable, match=reason):
        _send(transport, address)


def test_a_path_that_cannot_be_sent(transport, url):
    for path in ("/a path", "/a\r\nX: y", "/ä"):
        with pytest.raises(ServerUnavailable):
            _send(transport, url + path)


def test_a_silent_server(transport):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(ServerUnavailable, match=r"no reply within 0\.1 s"):
            _send(transport, address, timeout_s=(1.0, 0.1))


def test_the_limit_of_each_call_counts(transport, url):
    _send(transport, url, timeout_s=(1.0, 5.0))
    _Echo.together = threading.Barrier(2)
    with pytest.raises(ServerUnavailable, match=r"no reply within 0\.1 s"):
        _send(transport, url + "/together", timeout_s=(1.0, 0.1))
    _Echo.together.abort()


@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl makes the certificate")
def test_certificates(tmp_path, transport, monkeypatch):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "1", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate),
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with _serving(lambda one: context.wrap_socket(one, server_side=True)) as port:
        authorities.cache_clear()
        with pytest.raises(ServerUnavailable, match="(?i)certificate"):
            _send(transport, f"https://localhost:{port}/")
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        authorities.cache_clear()
        for _ in range(2):
            assert _send(transport, f"https://localhost:{port}/", LONG).body == LONG
        with pytest.raises(ServerUnavailable, match="(?i)certificate"):
            _send(transport, f"https://127.0.0.1:{port}/")
    authorities.cache_clear()
