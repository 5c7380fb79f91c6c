"""Clients without the token: what they can make a container keep, and whom they keep out."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from urllib.parse import urlsplit

import pytest
import requests
from containers import Running, inside, inspect

from agentgyms import make_group
from env_servers import gate

pytestmark = pytest.mark.docker

APPWORLD = "agentgyms/AppWorld-v0"
DESCRIPTION = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
CROWD = 80
MANY = 43_000 // len(DESCRIPTION)
MOST_GROWTH = 32 << 20
"""Most bytes that a container's processes may take for such a crowd: a reply has 53 kB."""

LIMIT_S = 60.0

RESIDENT = """
import os, pathlib
pages = 0
for folder in pathlib.Path("/proc").glob("[0-9]*"):
    try:
        pages += int((folder / "statm").read_text().split()[1]) * (int(folder.name) != os.getpid())
    except OSError:  # it has ended
        continue
print(pages * os.sysconf("SC_PAGE_SIZE"))
"""

Connect = Callable[[Running], socket.socket]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Connects to a container with a small buffer; connections are closed in the end."""
    with ExitStack() as opened:

        def one(running: Running) -> socket.socket:
            address = urlsplit(running.url)
            connection = opened.enter_context(socket.socket())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.settimeout(LIMIT_S)
            connection.connect((address.hostname, address.port))
            return connection

        yield one


def resident(running: Running) -> dict[str, int]:
    """Return the resident memory of a service's containers, in bytes."""
    parts = filter(None, (running.name, running.gate))
    return {part: int(inside(part, RESIDENT)) for part in parts}


def errors(running: Running) -> list[str]:
    """Return the counts of errors that a server has told."""
    text = requests.get(f"{running.url}/metrics", timeout=LIMIT_S).text
    return re.findall(r"^agentgyms_errors_total\{.*$", text, re.MULTILINE)


@pytest.mark.parametrize("name", ["alfworld", "appworld"])
def test_who_reads_nothing_takes_no_memory_and_keeps_nobody_out(services, connect, name):
    running = services[name]
    before = resident(running)
    for _ in range(CROWD):
        with suppress(ConnectionError):  # who sends so many is cut off
            connect(running).sendall(DESCRIPTION * MANY)
    with requests.Session() as ours:
        ours.headers["Authorization"] = f"Bearer {running.token}"
        for _ in range(37):
            made = ours.post(f"{running.url}/v1/sessions", timeout=LIMIT_S)
            assert made.status_code == 201
            path = f"{running.url}/v1/sessions/{made.json()['session_id']}"
            assert ours.delete(path, timeout=LIMIT_S).ok
    after = resident(running)
    assert all(after[part] - before[part] < MOST_GROWTH for part in before), (before, after)


def test_idle_connections_harm_no_session(services, connect):
    """More connections than the gate relays at a time."""
    running = services["appworld"]
    told = errors(running)
    there = {"url": running.url, "token": running.token}
    with make_group(APPWORLD, 16, **there) as early:
        early.reset(seed=1)
        for _ in range(gate.MOST_CONNECTIONS + 100):
            with suppress(ConnectionError):
                connect(running)
        with make_group(APPWORLD, 16, **there) as late:
            late.reset(seed=1)
            for group in (early, late, early):
                results = group.step(["print(1)"] * 16)
                assert [result[0] for result in results] == ["1\n"] * 16
    assert errors(running) == told
    assert inspect(running.name)["RestartCount"] == inspect(running.gate)["RestartCount"] == 0
