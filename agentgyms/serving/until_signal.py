"""Serving until a signal, as a program does."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import click

from agentgyms.processes import child
from agentgyms.processes.signals import leave, stop_at_signal
from agentgyms.serving import open_files
from agentgyms.serving.served import EXTENSION
from agentgyms.serving.server import Server

if TYPE_CHECKING:
    from flask import Flask

_EXIT_S: Final = 3.0

log = logging.getLogger(__name__)


def serve(
    app: Flask,
    host: str,
    port: int,
    threads: int | None = None,
    *,
    greeting: Callable[[str], str],
    grace_s: float,
) -> None:
    """Serve an application until SIGTERM or SIGINT; a second one ends it at once.

    Port 0 takes a free one; for `threads` see `Server`. `greeting(address)` is printed as soon as
    it listens. In the end, requests may take `grace_s` seconds to finish. Raises
    `click.ClickException` if it cannot listen.
    """
    clients = app.extensions[EXTENSION].sessions
    open_files.allow_sessions(clients.max_sessions, clients.files_each)
    try:
        server = Server(app, host, port, threads)
    except OSError as e:
        raise click.ClickException(f"cannot listen on {host}:{port}: {e.strerror or e}") from None
    stop = stop_at_signal()
    with server:
        print(greeting(server.url), flush=True)  # noqa: T201 (a program's own output)
        stop.wait()
        log.info("stopping: requests may take %g s to finish", grace_s)
        finished = server.drain(grace_s)
    if not finished:  # the interpreter waits for threads that may never come back
        child.kill_all()
        late = threading.Timer(_EXIT_S, leave, [0])
        late.daemon = True
        late.start()
