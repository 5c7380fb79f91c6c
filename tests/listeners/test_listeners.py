"""Strangers at every listener: silent, slow, from other sites, guessing, and sending too much."""

from __future__ import annotations

import ast
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
import requests
from listeners import BINDING, LISTENERS, Listener, echo

from agentgyms.adapters import mcp_http
from agentgyms.core.errors import BadOption
from agentgyms.serving import channel, connection_limits, guesses
from agentgyms.serving.served import EXTENSION
from agentgyms.serving.server import Server
from harness.training.gateway.server import listen
from harness.types.errors import ConfigError

ROOT: Final = Path(__file__).parents[2]
TOKEN: Final = "a-token"
LIMIT_S: Final = 60.0
CALLS: Final = {
    *("HTTPServer", "ThreadingHTTPServer", "TCPServer", "UDPServer", "WSGIServer", "make_server"),
    *("bind", "listen", "run_simple", "serve_forever", "create_server", "create_unix_server"),
    *("start_server", "start_unix_server", "create_datagram_endpoint"),
}
"""Functions that bind a port, in the standard library and in werkzeug."""

SERVING: Final = {"agentgyms.serving.server": "Server", "agentgyms.serving.until_signal": "serve"}


# --- the list ------------------------------------------------------------------------------------


def binds(path: Path) -> bool:
    """Return whether a module calls what binds a port, or imports what does."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module in SERVING:
            if SERVING[node.module] in {alias.name for alias in node.names}:
                return True
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            owner = getattr(getattr(node.func, "value", None), "id", "")
            if name in CALLS or (owner, name) in {("uvicorn", "run"), ("waitress", "serve")}:
                return True
    return False


def test_every_module_that_binds_a_port_has_its_row():
    folders = ("agentgyms", "env_servers", "harness", "examples")
    found = {
        str(path.relative_to(ROOT))
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
        if binds(path)
    }
    elsewhere = {"harness/training/players/outside_agents.py"}  # calls the gateway's `listen`
    assert found - elsewhere == BINDING.keys()
    assert LISTENERS.keys() - {"agentgym", "play page"} <= set(BINDING.values())


# --- the same for each ---------------------------------------------------------------------------


class Clock:
    """Time as the connections see it, which passes when a test says so."""

    def __init__(self) -> None:
        self.now = time.monotonic()

    def monotonic(self) -> float:
        return self.now


@pytest.fixture(params=LISTENERS)
def listener(request: pytest.FixtureRequest) -> Listener:
    return LISTENERS[request.param]


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def serve(listener: Listener, opened: ExitStack) -> Callable[..., Server]:
    """Serves the application on a socket: `serve(token, threads)`."""

    def run(token: str = TOKEN, threads: int | None = None) -> Server:
        app = opened.enter_context(listener.made(token))
        return opened.enter_context(Server(app, threads=threads))

    return run


@pytest.fixture
def connect(opened: ExitStack) -> Callable[[Server], socket.socket]:
    def one(server: Server) -> socket.socket:
        host, _, port = server.url.removeprefix("http://").rpartition(":")
        return opened.enter_context(socket.create_connection((host, int(port)), timeout=LIMIT_S))

    return one


def asked(server: Server, listener: Listener, **headers: str) -> int:
    """Return the status of a request for the route that asks for the token."""
    url = f"{server.url}{listener.path}"
    reply = requests.request(
        listener.method, url, headers=headers, timeout=LIMIT_S, allow_redirects=False
    )
    return reply.status_code


def ours(server: Server, listener: Listener) -> int:
    return asked(server, listener, Authorization=f"Bearer {TOKEN}")


def raw(listener: Listener, *lines: str, method: str = "") -> bytes:
    head = (f"{method or listener.method} {listener.path} HTTP/1.1", "Host: localhost", *lines)
    return "\r\n".join((*head, "", "")).encode()


def channels(server: Server) -> list[Any]:
    return list(server._waitress.active_channels.values())


def received(server: Server) -> int:
    """Return how many bytes of bodies have come in, on all connections."""
    coming = [one.request for one in channels(server)]
    return sum(request.body_bytes_received for request in coming if request is not None)


def until(condition: Callable[[], Any]) -> None:
    deadline = time.perf_counter() + LIMIT_S
    while not condition():
        assert time.perf_counter() < deadline
        time.sleep(0.005)


def test_who_has_no_token_gets_nothing(serve, listener):
    server = serve()
    assert asked(server, listener) == 401
    assert asked(server, listener, Authorization="Bearer no") == 401
    assert ours(server, listener) not in (401, 403)
    assert requests.get(server.url + listener.probe, timeout=LIMIT_S).ok


def test_pages_of_other_sites_get_nothing_without_a_token(serve, listener):
    server = serve("")
    assert asked(server, listener) not in (401, 403)
    assert asked(server, listener, Host="evil.example") == listener.no_page
    assert asked(server, listener, Origin="https://evil.example") == listener.no_page
    assert asked(server, listener, Origin="null") == listener.no_page
    assert requests.get(server.url + listener.probe, timeout=LIMIT_S).ok


def test_wrong_tokens_wait_and_who_has_the_token_does_not(
    serve, listener, connect, monkeypatch: pytest.MonkeyPatch
):
    clock = Clock()
    monkeypatch.setattr(channel, "time", clock)
    server = serve(threads=1)

    def late() -> int:
        return sum(one._late is not None for one in channels(server))

    crowd = [connect(server) for _ in range(20)]
    for number, connection in enumerate(crowd):
        lines = (f"Authorization: Bearer guess-{number}", "Content-Length: 0")
        connection.sendall(raw(listener, *lines))
    until(lambda: late() == 20 - guesses.FREE)
    for _ in range(10):
        assert ours(server, listener) not in (401, 403)
    assert late() == 20 - guesses.FREE
    clock.now += guesses.LONGEST_S + 1
    for connection in crowd:
        assert connection.recv(12) == b"HTTP/1.1 401"


@pytest.mark.parametrize("sent", [b"", b"GET /heal"], ids=["silent", "begun"])
def test_idle_strangers_have_so_many_places_and_keep_nobody_out(serve, listener, connect, sent):
    server = serve()
    most = min(connection_limits.MOST_STRANGERS, server._waitress.adj.connection_limit // 2)
    crowd = []
    for _ in range(most + 60):
        crowd.append(connect(server))
        crowd[-1].sendall(sent)
    assert ours(server, listener) not in (401, 403)
    until(lambda: sum(not one.known for one in channels(server)) <= most)
    assert ours(server, listener) not in (401, 403)


def test_those_who_send_slowly_hold_no_thread(serve, listener, connect):
    server = serve(threads=1)
    bearer = f"Authorization: Bearer {TOKEN}"
    whole = raw(listener, bearer, "Content-Length: 100", method="POST")
    for number in range(21):
        connect(server).sendall((b"GET /heal", whole[:-2], whole + b"{")[number % 3])
    for _ in range(3):
        assert ours(server, listener) not in (401, 403)


def test_a_strangers_body_is_not_kept(serve, listener, connect):
    server = serve()
    connection = connect(server)
    connection.sendall(raw(listener, "Content-Length: 1000000", method="POST") + bytes(500_000))
    until(lambda: received(server) == 500_000)
    assert sum(one.held for one in channels(server)) == 0


def test_a_body_that_is_too_long_is_refused_and_not_kept(serve, listener, connect):
    server = serve()
    size = server._service.max_body_bytes + 2
    bearer = f"Authorization: Bearer {TOKEN}"
    connection = connect(server)
    lines = (bearer, f"Content-Length: {size}", "Content-Type: application/json")
    connection.sendall(raw(listener, *lines, method="POST") + bytes(size - 1))
    until(lambda: received(server) == size - 1)
    assert sum(one.held for one in channels(server)) == 0
    connection.sendall(b" ")
    assert connection.recv(12)[9:10] in (b"3", b"4")


def hello() -> bytes:
    """Return what a client of TLS sends first."""
    outgoing = ssl.MemoryBIO()
    context = ssl.create_default_context()
    begun = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        begun.do_handshake()
    return outgoing.read()


@pytest.mark.parametrize("size", [None, 5, 1], ids=["whole", "head", "byte"])
@pytest.mark.parametrize("token", ["", TOKEN], ids=["open", "token"])
def test_a_client_of_tls_is_told_and_let_go(serve, listener, connect, token, size, caplog):
    server = serve(token, threads=1)
    caplog.set_level("DEBUG")
    for _ in range(3):
        connection = connect(server)
        connection.sendall(hello()[:size])
        reply = b"".join(iter(partial(connection.recv, 4096), b""))  # up to the server's end
        assert reply.startswith(b"HTTP/1.0 400 Bad Request\r\n")
        assert b"this port speaks HTTP without TLS: use http://" in reply
        until(lambda: not channels(server))
    assert not caplog.records
    assert requests.get(server.url + listener.probe, timeout=LIMIT_S).ok


def test_a_client_of_https_fails_at_once(serve, listener):
    server = serve()
    with pytest.raises(requests.exceptions.SSLError):
        requests.get(server.url.replace("http:", "https:") + listener.probe, timeout=LIMIT_S)


# --- beyond this machine, and MCP alone ----------------------------------------------------------


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "some.example"])
def test_beyond_this_machine_there_is_a_token_or_no_listener(host):
    """The programs of servers are tried in `test_server_process` and their own tests."""
    with pytest.raises(BadOption, match="AGENTGYMS_MCP_TOKEN"):
        mcp_http.serve_http(echo, (host, 0))
    with (
        LISTENERS["gateway"].made("") as app,
        pytest.raises(ConfigError, match="AGENTGYMS_GATEWAY_TOKEN"),
    ):
        listen(app, (host, 0), 4)


def test_the_gateway_takes_a_key_and_slows_wrong_ones(opened):
    gateway = LISTENERS["gateway"]
    server = opened.enter_context(Server(opened.enter_context(gateway.made(TOKEN))))
    assert asked(server, gateway, **{"X-Api-Key": "no"}) == 401
    assert asked(server, gateway, **{"X-Api-Key": TOKEN}) == 200
    assert [
        len(guess._wrong) for guess in {server._waitress.channel_class.keywords["guesses"]}
    ] == [1]


def test_mcp_hands_requests_on_and_answers_whole(opened):
    app = opened.enter_context(LISTENERS["mcp"].made(""))
    server = opened.enter_context(Server(app))
    url = f"{server.url}/mcp"
    reply = requests.post(url, b"\x00bytes", headers={"Content-Type": "a/b"}, timeout=LIMIT_S)
    assert (reply.status_code, reply.content) == (202, b"\x00bytes")
    assert reply.headers["X-Kind"] == "a/b"
    for method in ("GET", "DELETE"):
        refused = requests.request(method, url, timeout=LIMIT_S)
        assert refused.status_code == 405
        assert "POST" in refused.headers["Allow"]
        assert refused.json()["error"]["message"] == "Method Not Allowed"
    failed = requests.post(url, b"fail", timeout=LIMIT_S)
    assert failed.status_code == 500
    assert "secret" not in failed.text


def test_mcp_gives_up_what_nobody_waits_for(opened, connect):
    mcp = LISTENERS["mcp"]
    app = opened.enter_context(mcp.made(""))
    server = opened.enter_context(Server(app, threads=1))
    with connect(server) as leaving:
        leaving.sendall(raw(mcp, "Content-Length: 4") + b"wait")
        until(lambda: app.extensions[EXTENSION].in_flight)
    assert asked(server, mcp) == 202
