"""A gateway on a socket: waitress in a thread."""

from __future__ import annotations

import threading
from typing import Any, Final

import waitress
from flask import Flask

from harness.config.rollout_settings import is_loopback
from harness.training.gateway.web import MAX_BODY_BYTES
from harness.types.errors import ConfigError

TOKEN_VARIABLE: Final = "AGENTGYMS_GATEWAY_TOKEN"  # noqa: S105
MOST_THREADS: Final = 256


class GatewayServer:
    """One application behind one listening socket, until `stop`.

    Port 0 takes a free one, see `url`. Requests that wait for an answer count among the `threads`.
    Raises `ConfigError` if the address cannot be used, or is public and has no `token`.
    """

    def __init__(
        self, app: Flask, address: tuple[str, int], threads: int = 16, token: str = ""
    ) -> None:
        host, port = address
        if not token and not is_loopback(host):
            raise ConfigError(
                f"rollout.gateway listens on {host}, beyond this machine, without a token: set "
                f"{TOKEN_VARIABLE}, or listen on 127.0.0.1"
            )
        self._channels: dict[int, Any] = {}
        try:
            self._waitress: Any = waitress.create_server(
                app,
                map=self._channels,
                host=host,
                port=port,
                threads=min(threads, MOST_THREADS),
                channel_request_lookahead=1,  # so that a client that leaves meanwhile is noticed
                max_request_body_size=2 * MAX_BODY_BYTES,
                ident=None,
            )
        except OSError as e:
            raise ConfigError(f"rollout.gateway cannot listen on {host}:{port}: {e}") from e
        self.url = f"http://{host}:{self._waitress.effective_port}"
        self._thread = threading.Thread(target=self._waitress.run, name="gateway", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Close the socket and all connections."""
        self._waitress.trigger.pull_trigger(self._close_all)  # the loop's thread closes its sockets
        self._thread.join(timeout=5)
        self._waitress.task_dispatcher.shutdown(timeout=1)

    def _close_all(self) -> None:
        for channel in list(self._channels.values()):
            if channel is not self._waitress.trigger:
                channel.close()
        self._channels.clear()
