"""Common options of this package's programs: address and token."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from agentgyms.core import tracing
from agentgyms.core.errors import BadOption
from agentgyms.data import terminals
from agentgyms.serving.addresses import check_reach
from agentgyms.serving.cross_site import HOSTS_VARIABLE
from env_servers.observability import logs, process_memory

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
        if not insecure:
            check_reach(host, token, variable, "pass --insecure, ")
    except BadOption as e:
        raise click.UsageError(str(e)) from None
