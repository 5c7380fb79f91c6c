"""A gateway on a socket."""

from __future__ import annotations

from typing import Final

from flask import Flask

from agentgyms.core.errors import BadOption
from agentgyms.serving.addresses import check_reach
from agentgyms.serving.server import Server
from harness.types.errors import ConfigError

TOKEN_VARIABLE: Final = "AGENTGYMS_GATEWAY_TOKEN"  # noqa: S105
MOST_THREADS: Final = 256


def listen(app: Flask, address: tuple[str, int], threads: int, token: str = "") -> Server:
    """Return a server that listens and is to be started; waiting requests take `threads`.

    Port 0 takes a free one, see `url`. Raises `ConfigError` if the address cannot be used, or is
    public and has no `token`.
    """
    host, port = address
    try:
        check_reach(host, token, TOKEN_VARIABLE)
        return Server(app, host, port, min(threads, MOST_THREADS))
    except BadOption as e:
        raise ConfigError(f"rollout.gateway: {e}") from None
    except OSError as e:
        raise ConfigError(f"rollout.gateway cannot listen on {host}:{port}: {e}") from e
