"""`python -m env_servers.retriever`: serve the search of SearchQA."""

from __future__ import annotations

import logging
import signal
import threading
from pathlib import Path

import click

from agentgyms.errors import CallerError, DataError
from agentgyms.searchqa.http_retriever import TOKEN_VARIABLE
from agentgyms.searchqa.sources import closed_world_retriever, corpus_retriever
from env_servers.retriever_app import create_retriever_app
from env_servers.serving import Server, is_loopback

_GRACE_S = 8.0


@click.command(context_settings={"show_default": True})
@click.option(
    "--corpus",
    type=click.Path(path_type=Path),
    show_default="the closed world of the generated questions",
    help='JSON lines of {"id": "7", "contents": "\\"Title\\"\\ntext"}, kept in memory.',
)
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, help="0 takes a free one.")
@click.option(
    "--token",
    envvar=TOKEN_VARIABLE,
    default="",
    show_default=False,
    show_envvar=True,
    help="Bearer token that clients must send; other users see the command line, so prefer the "
    "variable, which the client reads too.",
)
@click.option("--insecure", is_flag=True, help="Listen beyond this machine without a token.")
def main(corpus: Path | None, host: str, port: int, token: str, insecure: bool) -> None:
    """Answer searches with BM25 at /retrieve, in the forms of Search-R1 and of SkyRL."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    if not token.strip() and not insecure and not is_loopback(host):
        raise click.UsageError(
            f"{host} can be reached from other machines, and there is no token: set "
            f"{TOKEN_VARIABLE}, listen on 127.0.0.1, or pass --insecure"
        )
    try:
        retriever = closed_world_retriever() if corpus is None else corpus_retriever(corpus)
        app = create_retriever_app(retriever, token=token)
    except (CallerError, DataError) as e:
        raise click.UsageError(str(e)) from None
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        server = Server(app, host, port)
    except OSError as e:
        raise click.ClickException(f"cannot listen on {host}:{port}: {e.strerror or e}") from None
    with server:
        click.echo(f"{len(retriever)} documents at {server.url}/retrieve")
        stop.wait()
        server.drain(_GRACE_S)


if __name__ == "__main__":
    main(prog_name="python -m env_servers.retriever")
