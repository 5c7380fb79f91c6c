"""`python -m env_servers ENV_ID`: serve one environment."""

from __future__ import annotations

import inspect
import json
import logging
from functools import partial
from typing import Any

import click

from agentgyms.cli import last_resort
from agentgyms.core import imports
from agentgyms.core.errors import CallerError
from agentgyms.remote.protocol import framing

with imports.needed("server"):
    from agentgyms.serving.served import EXTENSION
    from agentgyms.serving.server import MOST_THREADS
    from agentgyms.serving.until_signal import serve
    from env_servers.command_lines import allow_host, begin, listen_with_token
    from env_servers.http.app import MAX_SESSIONS, TTL_S, create_app
    from env_servers.observability import logs
    from env_servers.sessions.errors import Refusal
    from env_servers.sessions.service import Service

log = logging.getLogger("env_servers")


@click.command(context_settings={"show_default": True})
@click.argument("env_id")
@listen_with_token(
    framing.TOKEN_VARIABLE,
    "Bearer token that clients must send; other users see the command line, so prefer the "
    "variable.",
)
@click.option("--max-sessions", type=click.IntRange(1), default=MAX_SESSIONS)
@click.option("--ttl", type=click.FloatRange(0, min_open=True), default=TTL_S, help="Seconds.")
@click.option(
    "--threads",
    type=click.IntRange(1),
    default=None,
    show_default=f"one per session, at most {MOST_THREADS}",
)
@click.option(
    "--max-body", type=click.IntRange(1024), default=framing.MAX_BODY_BYTES, help="Bytes."
)
@click.option(
    "--grace",
    type=click.FloatRange(0),
    default=8.0,
    help="Seconds that requests may take to finish after SIGTERM.",
)
@click.option("--insecure", is_flag=True, help="Listen beyond this machine without a token.")
@allow_host
@click.option(
    "--cors-origin",
    "cors_origins",
    multiple=True,
    metavar="ORIGIN",
    help="A site whose pages may use this server, such as https://site.example. Repeatable.",
)
@click.option("--agentgym", is_flag=True, help="Answer AgentGym's clients too, under /v1/agentgym.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Argument of the environment; the value is JSON, else a string. Repeatable.",
)
@logs.options
def main(
    env_id: str,
    host: str,
    port: int,
    token: str,
    max_sessions: int,
    ttl: float,
    threads: int | None,
    max_body: int,
    grace: float,
    insecure: bool,
    hosts: tuple[str, ...],
    cors_origins: tuple[str, ...],
    agentgym: bool,
    settings: tuple[str, ...],
) -> None:
    """Serve the environment ENV_ID, such as agentgyms/ALFWorld-v0, over HTTP."""
    begin(host, token, insecure=insecure, variable=framing.TOKEN_VARIABLE)
    try:
        app = create_app(
            env_id,
            token=token,
            max_sessions=max_sessions,
            ttl_s=ttl,
            max_body_bytes=max_body,
            hosts=hosts,
            cors_origins=cors_origins,
            agentgym=agentgym,
            **_read_settings(settings),
        )
        _warm_up(app.extensions[EXTENSION])
    except (CallerError, Refusal, ImportError) as e:
        raise click.UsageError(str(e)) from None
    serve(app, host, port, threads, greeting=lambda url: f"{env_id} at {url}", grace_s=grace)


def _read_settings(settings: tuple[str, ...]) -> dict[str, Any]:
    kwargs: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not (key and equals):
            raise click.UsageError(f"--set {setting!r}: expected KEY=VALUE")
        if key in inspect.signature(create_app).parameters:
            raise click.UsageError(f"--set {key}: that is no argument of an environment")
        try:
            kwargs[key] = json.loads(value)
        except ValueError:
            kwargs[key] = value
    return kwargs


def _warm_up(service: Service) -> None:
    """Make one environment: a wrong argument ends the program, missing data only delays it."""
    try:
        service.ready()
    except (CallerError, Refusal):
        raise
    except Exception:
        log.exception("not ready yet; /readyz tries again")


if __name__ == "__main__":
    last_resort.run("env_servers", partial(main, prog_name="python -m env_servers"))
