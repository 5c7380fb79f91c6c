"""`python -m env_servers.retriever`: serve the search of SearchQA."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import click

from agentgyms.cli import last_resort
from agentgyms.core import imports
from agentgyms.core.errors import CallerError, DataError
from agentgyms.data.writing import write_named
from agentgyms.envs.searchqa.corpus import load_corpus
from agentgyms.envs.searchqa.http_retriever import TOKEN_VARIABLE
from agentgyms.envs.searchqa.sources import closed_world_retriever, corpus_retriever
from agentgyms.envs.searchqa.world import closed_world

with imports.needed("server"):
    from agentgyms.serving.until_signal import serve
    from env_servers.command_lines import allow_host, begin, listen_with_token
    from env_servers.observability import logs
    from env_servers.retriever.app import MAX_CLIENTS, create_retriever_app

_GRACE_S = 8.0


@click.command(context_settings={"show_default": True})
@click.option(
    "--corpus",
    type=click.Path(path_type=Path),
    show_default="the closed world of the generated questions",
    help='JSON lines of {"id": "7", "contents": "\\"Title\\"\\ntext"}, kept in memory.',
)
@listen_with_token(
    TOKEN_VARIABLE,
    "Bearer token that clients must send; other users see the command line, so prefer the "
    "variable, which the client reads too.",
)
@click.option("--insecure", is_flag=True, help="Listen beyond this machine without a token.")
@allow_host
@click.option(
    "--max-clients",
    type=click.IntRange(1),
    default=MAX_CLIENTS,
    help="How many clients may keep a connection at a time.",
)
@click.option(
    "--export",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the corpus to this file as JSON lines, and serve nothing.",
)
@logs.options
def main(
    corpus: Path | None,
    host: str,
    port: int,
    token: str,
    insecure: bool,
    hosts: tuple[str, ...],
    max_clients: int,
    export: Path | None,
) -> None:
    """Answer searches with BM25 at /retrieve, in the forms of Search-R1 and of SkyRL."""
    if export is not None:
        _export(corpus, export)
        return
    begin(host, token, insecure=insecure, variable=TOKEN_VARIABLE)
    try:
        retriever = closed_world_retriever() if corpus is None else corpus_retriever(corpus)
        app = create_retriever_app(retriever, token=token, max_clients=max_clients, hosts=hosts)
    except (CallerError, DataError) as e:
        raise click.UsageError(str(e)) from None
    greeting = f"{len(retriever)} documents at {{}}/retrieve"
    serve(app, host, port, greeting=greeting.format, grace_s=_GRACE_S)


def _export(corpus: Path | None, file: Path) -> None:
    try:
        documents = closed_world().documents if corpus is None else load_corpus(corpus)
        rows = [json.dumps({"id": d.doc_id, "contents": d.contents}) + "\n" for d in documents]
        write_named(file, "".join(rows))
        count = len(rows)
    except DataError as e:
        raise click.UsageError(str(e)) from None
    except OSError as e:
        raise click.ClickException(f"cannot write {file}: {e.strerror or e}") from None
    click.echo(f"{count} documents in {file}")


if __name__ == "__main__":
    last_resort.run("env_servers", partial(main, prog_name="python -m env_servers.retriever"))
