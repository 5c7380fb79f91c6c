"""What the programs of this package do alike: refuse to stand open, and serve until a signal."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from env_servers.serving import Server, is_loopback

if TYPE_CHECKING:
    from flask import Flask


def begin(host: str, token: str, *, insecure: bool, variable: str) -> None:
    """Set up the log, and refuse to listen beyond this machine without a token.

    Raises:
        click.UsageError: Others could come in, and nobody said that they may.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # else a line for each model's answer
    if not token.strip() and not insecure and not is_loopback(host):
        raise click.UsageError(
            f"{host} can be reached from other machines, and there is no token: set "
            f"{variable}, listen on 127.0.0.1, or pass --insecure"
        )


def serve(
    app: Flask,
    host: str,
    port: int,
    threads: int | None = None,
    *,
    greeting: Callable[[str], str],
    grace_s: float,
) -> None:
    """Serve an application until SIGTERM or SIGINT.

    Args:
        app: The application.
        host: Address to listen on.
        port: 0 takes a free one.
        threads: As for `Server`.
        greeting: What to print as soon as it listens, given its address.
        grace_s: Seconds that requests may take to finish in the end.

    Raises:
        click.ClickException: It cannot listen there.
    """
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        server = Server(app, host, port, threads)
    except OSError as e:
        raise click.ClickException(f"cannot listen on {host}:{port}: {e.strerror or e}") from None
    with server:
        print(greeting(server.url), flush=True)  # noqa: T201 (a program's own output)
        stop.wait()
        server.drain(grace_s)
