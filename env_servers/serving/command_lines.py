"""Common parts of this package's programs: address and token, and serving until a signal."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from agentgyms.core import tracing
from agentgyms.core.errors import BadOption
from agentgyms.data import terminals
from agentgyms.processes import child
from env_servers.observability import logs, process_memory
from env_servers.serving import open_files
from env_servers.serving.server import Server, is_loopback
from env_servers.sessions.service import EXTENSION

if TYPE_CHECKING:
    from flask import Flask


HOSTS_VARIABLE: Final = "AGENTGYMS_ALLOWED_HOSTS"

_EXIT_S: Final = 3.0

log = logging.getLogger(__name__)

F = TypeVar("F", bound=Callable[..., Any])


def listen_with_token(variable: str, explained: str) -> Callable[[F], F]:
    """Return a decorator that adds `--host`, `--port` and `--token`, with its variable and help."""
    options = (
        click.option("--host", default="127.0.0.1", help="Address to listen on."),
        click.option(
            "--port", type=click.IntRange(0, 65535), default=8000, help="0 takes a free one."
        ),
        click.option(
            "--token",
            envvar=variable,
            default="",
            show_default=False,
            show_envvar=True,
            help=explained,
        ),
    )

    def add(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def allow_host(command: F) -> F:
    """Add the option for the names at which a server without a token answers."""
    return click.option(
        "--allow-host",
        "hosts",
        multiple=True,
        envvar=HOSTS_VARIABLE,
        show_envvar=True,
        metavar="NAME",
        help="Without a token: answer at this name too, such as server.example. Addresses, "
        "localhost and names without a dot are always answered at. Repeatable.",
    )(command)


def begin(host: str, token: str, *, insecure: bool, variable: str) -> None:
    """Set up the log and the memory, and refuse to listen beyond this machine without a token.

    Raises `click.UsageError` if other machines could connect without one and `insecure` is not set,
    or if spans are wanted and cannot be made.
    """
    terminals.set_up()
    logs.set_up()
    process_memory.stay_small()
    try:
        tracing.set_up("agentgyms-server")
    except BadOption as e:
        raise click.UsageError(str(e)) from None
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
    """Serve an application until SIGTERM or SIGINT; a second one ends it at once.

    Port 0 takes a free one; for `threads` see `Server`. `greeting(address)` is printed as soon as
    it listens. In the end, requests may take `grace_s` seconds to finish. Raises
    `click.ClickException` if it cannot listen.
    """
    stop = threading.Event()

    def end(number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            _exit(128 + number)
        stop.set()

    clients = app.extensions[EXTENSION].sessions
    open_files.allow_sessions(clients.max_sessions, clients.files_each)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    try:
        server = Server(app, host, port, threads)
    except OSError as e:
        raise click.ClickException(f"cannot listen on {host}:{port}: {e.strerror or e}") from None
    with server:
        print(greeting(server.url), flush=True)  # noqa: T201 (a program's own output)
        stop.wait()
        log.info("stopping: requests may take %g s to finish", grace_s)
        finished = server.drain(grace_s)
    if not finished:  # the interpreter waits for threads that may never come back
        child.kill_all()
        late = threading.Timer(_EXIT_S, _exit, [0])
        late.daemon = True
        late.start()


def _exit(status: int) -> None:
    """End this process and its workers."""
    child.kill_all()
    os._exit(status)
