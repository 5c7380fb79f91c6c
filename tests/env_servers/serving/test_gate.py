"""The gate: what goes through it, unchanged, and what does not."""

from __future__ import annotations

import os
import secrets
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import gymnasium as gym
import pytest
from click.testing import CliRunner

from agentgyms import make_group, testing
from agentgyms.serving import open_files
from agentgyms.serving.channel import MOST_QUEUED
from env_servers import Server, create_app
from env_servers.gate import MOST_CONNECTIONS, main

CORRIDOR = "agentgyms/Corridor-v0"
DESCRIPTION = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
IDS = ["idle", "half", "pipelined"]
RESET = struct.pack("ii", 1, 0)

Ends = tuple[socket.socket, socket.socket]


@contextmanager
def gate(port: int, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Start a gate to a port of this machine, and give the process and its own port."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "env_servers.gate",
            f"--to=127.0.0.1:{port}",
            "--port=0",
            *arguments,
        ],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield process, int(process.stdout.readline().rpartition(":")[2])
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(30)
        yield listening


@pytest.fixture
def own(server: socket.socket) -> Iterator[int]:
    """Give the port of a gate to that server."""
    with gate(server.getsockname()[1], "--max-connections=2") as (_, port):
        yield port


@pytest.fixture
def through(server: socket.socket, own: int) -> Iterator[Callable[[], Ends]]:
    """Give a function that connects through the gate and returns both ends."""
    opened: list[socket.socket] = []

    def connect() -> Ends:
        near = connected(own)
        opened.append(near)
        far, _ = server.accept()
        far.settimeout(30)
        opened.append(far)
        return near, far

    yield connect
    for end in opened:
        end.close()
    time.sleep(0.1)  # until the gate has seen these ends, too


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def lets_in(port: int) -> bool:
    with socket.socket() as near:
        return near.connect_ex(("127.0.0.1", port)) == 0


def let_in(port: int, server: socket.socket) -> Ends:
    """Connect again and again until the gate lets a connection through, and return both ends."""
    for _ in range(50):
        with suppress(ConnectionResetError):
            near = connected(port)
            if server in select.select([near, server], [], [], 5)[0]:
                return near, server.accept()[0]
            near.close()
        time.sleep(0.1)
    raise AssertionError("the gate lets nobody in")


def read_all(end: socket.socket) -> bytes:
    return b"".join(iter(lambda: end.recv(1 << 16), b""))


def test_bytes_go_through_both_ways_though_one_side_has_ended(through):
    near, far = through()
    request, reply = secrets.token_bytes(3 << 20), secrets.token_bytes(3 << 20)
    sender = threading.Thread(target=lambda: (near.sendall(request), near.shutdown(socket.SHUT_WR)))
    sender.start()
    assert read_all(far) == request
    sender.join()
    answerer = threading.Thread(target=lambda: (far.sendall(reply), far.close()))
    answerer.start()
    assert read_all(near) == reply
    answerer.join()


def test_who_does_not_read_is_not_read_for(through):
    near, far = through()
    far.settimeout(0.3)
    with pytest.raises(TimeoutError):
        far.sendall(bytes(64 << 20))  # the gate would have to keep it
    far.close()
    near.close()


@pytest.mark.parametrize("breaks", ["near", "far"])
def test_what_breaks_off_on_one_side_breaks_off_on_the_other(through, breaks):
    near, far = through()
    first, other = (near, far) if breaks == "near" else (far, near)
    near.sendall(b"x")
    assert far.recv(1) == b"x"
    first.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    first.close()
    with pytest.raises(ConnectionResetError):
        other.recv(1)


def test_connections_are_limited_and_end(through, own, server):
    near, far = through()
    through()
    with pytest.raises(ConnectionResetError), connected(own) as third:
        third.recv(1)
    near.close()
    assert far.recv(1) == b""
    far.close()
    again, there = let_in(own, server)
    with again, there:
        again.sendall(b"x")
        assert there.recv(1) == b"x"


def test_clients_that_stay_after_the_servers_end_keep_nobody_out(through, own, server):
    stay = [through() for _ in range(2)]
    for near, far in stay:
        far.sendall(b"reply")
        far.close()
        assert near.recv(16) == b"reply"
    ends = [let_in(own, server) for _ in range(2)]
    for end in ends:
        for one in end:
            one.close()
    assert [near.recv(1) for near, _ in stay] == [b"", b""]


def test_clients_that_read_nothing_keep_nobody_out(through, own, server):
    for _, far in (through(), through()):
        far.settimeout(0.3)
        with pytest.raises(TimeoutError):
            far.sendall(bytes(64 << 20))
    for end in let_in(own, server):
        end.close()


@pytest.mark.parametrize("sent", [b"", b"GET /heal", DESCRIPTION * MOST_QUEUED], ids=IDS)
def test_a_crowd_larger_than_its_places_keeps_nobody_out(sent):
    token = secrets.token_urlsafe(32)
    open_files.allow(3 * MOST_CONNECTIONS)
    with (
        ExitStack() as opened,
        Server(create_app(CORRIDOR, token=token)) as server,
        gate(int(server.url.rpartition(":")[2])) as (_, own),
    ):
        for _ in range(MOST_CONNECTIONS + 60):
            near = opened.enter_context(socket.socket())
            near.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            near.connect(("127.0.0.1", own))
            with suppress(ConnectionError):
                near.sendall(sent)
        with make_group(CORRIDOR, 8, url=f"http://127.0.0.1:{own}", token=token) as group:
            assert len(group.reset(seed=1)[0]) == 8


def test_a_server_that_is_not_there_resets_the_connection():
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    with (
        gate(port) as (_, own),
        pytest.raises(ConnectionResetError),  # which may come while we connect
        connected(own) as near,
    ):
        near.recv(1)


@pytest.mark.parametrize(("grace", "signals"), [(0.1, 1), (60, 2)])
def test_sigterm_ends_it_and_what_is_open(server, grace, signals):
    with (
        gate(server.getsockname()[1], f"--grace={grace}") as (process, own),
        connected(own) as near,
        server.accept()[0],
    ):
        for _ in range(signals):
            process.send_signal(signal.SIGTERM)
            while lets_in(own):  # it has not seen the signal yet
                time.sleep(0.05)
        assert process.wait(60) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""
        with pytest.raises(ConnectionResetError):
            near.recv(1)


def test_sigterm_lets_a_reply_through_and_nobody_in(server):
    with (
        gate(server.getsockname()[1]) as (process, own),
        connected(own) as near,
        server.accept()[0] as far,
    ):
        process.send_signal(signal.SIGTERM)
        server.settimeout(1)
        while lets_in(own):
            with suppress(TimeoutError):  # the last one may come in as the gate closes
                server.accept()[0].close()
        far.sendall(b"reply")
        far.close()
        assert near.recv(16) == b"reply"
        near.close()
        assert process.wait(60) == 0


def test_a_connection_on_which_nothing_is_said_is_reset(server):
    with (
        gate(server.getsockname()[1], "--idle=1") as (_, own),
        connected(own) as near,
        server.accept()[0] as far,
    ):
        far.settimeout(30)
        near.settimeout(30)
        for _ in range(7):  # as long as something is said, it stays
            near.sendall(b"x")
            assert far.recv(1) == b"x"
            time.sleep(0.2)
        for end in (near, far):
            with pytest.raises(ConnectionResetError):
                end.recv(1)


def test_an_environment_behind_it_plays_as_one_here():
    with (
        Server(create_app(CORRIDOR)) as server,
        gate(int(server.url.rpartition(":")[2])) as (_, own),
    ):
        testing.check_remote_parity(
            lambda: gym.make(CORRIDOR), lambda: gym.make(CORRIDOR, url=f"http://127.0.0.1:{own}")
        )


@pytest.mark.parametrize("target", ["appworld", "appworld:", ":8000", "appworld:port", "a:70000"])
def test_it_needs_an_address(target):
    result = CliRunner().invoke(main, [f"--to={target}"])
    assert result.exit_code == 2
    assert "expected a name or address, a colon and a port" in result.output


def test_it_says_that_it_cannot_listen(server):
    port = server.getsockname()[1]
    result = CliRunner().invoke(main, ["--to=127.0.0.1:9", f"--port={port}"])
    assert result.exit_code == 1
    assert f"cannot listen on 127.0.0.1:{port}" in result.output
