"""Every listener of the project: what binds a port, and the applications behind the ports."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from flask import Flask

from agentgyms.adapters import mcp_http
from agentgyms.envs.searchqa.sources import closed_world_retriever
from agentgyms.serving.asgi_bridge import AsgiBridge
from env_servers import create_app
from env_servers.retriever.app import create_retriever_app
from env_servers.webshop_site.app import create_site
from harness.inference.completers import Sampling
from harness.model import tiny
from harness.model.tokenizer import ChatTokenizer
from harness.training.gateway import web
from harness.training.gateway.env_sessions import EnvSessions
from harness.training.gateway.gateway import Gateway, GatewayOptions

CORRIDOR: Final = "agentgyms/Corridor-v0"


class Listener(NamedTuple):
    """An application, and the route that asks for its token.

    `made(token)` makes it. `no_page` is the status for other sites' pages, `probe` the route that
    is open.
    """

    made: Callable[[str], Any]
    method: str
    path: str
    no_page: int = 401
    probe: str = "/healthz"


@contextmanager
def _servers(token: str) -> Iterator[Flask]:
    yield create_app(CORRIDOR, token=token, agentgym=True)


@contextmanager
def _shop(token: str) -> Iterator[Flask]:
    yield create_site(None, token=token)


@contextmanager
def _retriever(token: str) -> Iterator[Flask]:
    yield create_retriever_app(closed_world_retriever(), token=token)


@contextmanager
def _gateway(token: str) -> Iterator[Flask]:
    chats = ChatTokenizer(tiny.make_tokenizer(["a word"], 300), None)
    options = GatewayOptions("policy", 2, Sampling(1.0, 8))
    yield web.create_app(Gateway(None, chats, options, EnvSessions([])), token)


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answer as an ASGI application does: with the body, or on `wait` once the client has left."""
    if scope["type"] == "lifespan":
        while (message := await receive())["type"] != "lifespan.shutdown":
            await send({"type": f"{message['type']}.complete"})
        await send({"type": "lifespan.shutdown.complete"})
        return
    body = (await receive())["body"]
    if body == b"wait":
        await asyncio.Event().wait()
    if body == b"fail":
        raise ValueError("a secret")
    kind = dict(scope["headers"]).get(b"content-type", b"text/plain")
    await send({"type": "http.response.start", "status": 202, "headers": [(b"x-kind", kind)]})
    await send({"type": "http.response.body", "body": body[:2], "more_body": True})
    await send({"type": "http.response.body", "body": body[2:], "more_body": False})


@contextmanager
def _mcp(token: str) -> Iterator[Flask]:
    bridge = AsgiBridge(echo)
    try:
        yield mcp_http.create_app(bridge, token)
    finally:
        bridge.close()


LISTENERS: Final = {
    "environments": Listener(_servers, "GET", "/v1/info"),
    "agentgym": Listener(_servers, "POST", "/v1/agentgym/alfworld/reset"),
    "play page": Listener(_servers, "GET", "/play"),
    "shop": Listener(_shop, "GET", "/"),
    "retriever": Listener(_retriever, "POST", "/retrieve"),
    "gateway": Listener(_gateway, "GET", "/v1/rollouts", no_page=403),
    "mcp": Listener(_mcp, "POST", "/mcp", no_page=403),
}
"""Applications that answer HTTP; `test_listeners` tries the same on each."""

BINDING: Final = {
    "agentgyms/serving/server.py": "the socket of every application above",
    "agentgyms/serving/until_signal.py": "the programs' sockets",
    "agentgyms/adapters/mcp_http.py": "mcp",
    "env_servers/__main__.py": "environments",
    "env_servers/retriever/__main__.py": "retriever",
    "env_servers/webshop_site/__main__.py": "shop",
    "harness/training/gateway/server.py": "gateway",
    "env_servers/gate.py": "relays to one server, see tests/env_servers/serving/test_gate.py",
    "env_servers/__init__.py": "hands on the name `Server`",
    "agentgyms/serving/__init__.py": "hands on the name `Server`",
    "agentgyms/envs/webshop/browser/launch.py": "finds a free port for ChromeDriver, at 127.0.0.1",
    "harness/inference/device_transfer.py": "finds a free port, on which NCCL listens",
    "examples/openenv/server/app.py": "OpenEnv's own server, in an example",
}
"""Modules that bind ports, or bring what does: which listener that is, or why it is none."""
