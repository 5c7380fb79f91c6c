"""`python -m env_servers.webshop_site`: the shop as a web site for people."""

from __future__ import annotations

import json
import signal
import sys
from functools import partial
from typing import TYPE_CHECKING

import click

from agentgyms.cli import last_resort
from agentgyms.core import imports
from agentgyms.core.errors import CallerError, DataError, EnvUnavailable
from agentgyms.envs.webshop.env import CUTS, WebShopEnv
from agentgyms.envs.webshop.goals.goal_arrays import KINDS
from agentgyms.envs.webshop.goals.goal_list import DEFAULT_SEED
from agentgyms.envs.webshop.sources import SOURCES, open_shop
from agentgyms.remote.protocol import framing

with imports.needed("server"):
    from agentgyms.serving.served import EXTENSION
    from agentgyms.serving.server import Server
    from agentgyms.serving.until_signal import serve
    from env_servers.command_lines import allow_host, begin, listen_with_token
    from env_servers.observability import logs
    from env_servers.webshop_site.app import Offer, create_site
    from env_servers.webshop_site.browser_control import answer_requests
    from env_servers.webshop_site.visits import MAX_VISITS, TTL_S

if TYPE_CHECKING:
    from flask import Flask

_GRACE_S = 8.0
_MOST_CONTROLLED = 100_000
_THREADS = 16


@click.command(context_settings={"show_default": True})
@listen_with_token(
    framing.TOKEN_VARIABLE,
    "Token that the site asks for; other users see the command line, so prefer the variable.",
)
@click.option("--insecure", is_flag=True, help="Listen beyond this machine without a token.")
@allow_host
@click.option("--split", type=click.Choice(WebShopEnv.splits), default="train")
@click.option("--source", type=click.Choice(SOURCES), default="generated")
@click.option(
    "--data-path", default=None, help="official: what `agentgyms data import webshop` made."
)
@click.option("--goals", type=click.Choice(KINDS), default="synthetic")
@click.option("--goal-seed", type=int, default=DEFAULT_SEED, help="Seed of prices and bounds.")
@click.option("--cut", type=click.Choice(CUTS), default="product")
@click.option("--nouns", default="builtin", help="builtin, or spacy:<model>.")
@click.option("--show-attributes", is_flag=True, help="Show a page of each product's attributes.")
@click.option("--max-visits", type=click.IntRange(1), default=MAX_VISITS)
@click.option("--ttl", type=click.FloatRange(0, min_open=True), default=TTL_S, help="Seconds.")
@click.option(
    "--control",
    is_flag=True,
    hidden=True,
    help="Take visits from JSON lines on stdin, and no other.",
)
@logs.options
def main(
    host: str,
    port: int,
    token: str,
    insecure: bool,
    hosts: tuple[str, ...],
    split: str,
    source: str,
    data_path: str | None,
    goals: str,
    goal_seed: int,
    cut: str,
    nouns: str,
    show_attributes: bool,
    max_visits: int,
    ttl: float,
    control: bool,
) -> None:
    """Serve the shop as a web site; each visit gets a task of the split."""
    if control:
        _serve_environments(create_site(None, max_visits=_MOST_CONTROLLED, ttl_s=ttl))
        return
    begin(host, token, insecure=insecure, variable=framing.TOKEN_VARIABLE)
    try:
        shop = open_shop(source, data_path, goals, goal_seed, nouns).load()
        offer = Offer(shop, shop.goals.tasks(split, cut), show_attributes=show_attributes)
        app = create_site(offer, token=token, max_visits=max_visits, ttl_s=ttl, hosts=hosts)
    except (CallerError, DataError, EnvUnavailable) as e:
        raise click.UsageError(str(e)) from None
    serve(
        app,
        host,
        port,
        _THREADS,
        greeting=lambda url: f"the shop is open at {url}",
        grace_s=_GRACE_S,
    )


def _serve_environments(app: Flask) -> None:
    """Serve the visits that stdin requests, until stdin ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process at the other end decides
    with Server(app, threads=_THREADS) as server:
        print(json.dumps({"url": server.url}), flush=True)
        answer_requests(sys.stdin, sys.stdout, app.extensions[EXTENSION].sessions)


if __name__ == "__main__":
    last_resort.run("env_servers", partial(main, prog_name="python -m env_servers.webshop_site"))
