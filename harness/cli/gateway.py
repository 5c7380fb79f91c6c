"""`harness gateway`: train a recipe on what agents of others play."""

from __future__ import annotations

import click

from agentgyms.core import imports


@click.command()
@click.argument("recipe")
@click.option("--address", default="127.0.0.1:8600", show_default=True, metavar="HOST:PORT")
@click.option(
    "--set", "overrides", multiple=True, metavar="SECTION.KEY=VALUE", help="Change a setting."
)
@imports.needed("harness")
def gateway(recipe: str, address: str, overrides: tuple[str, ...]) -> None:
    """Train RECIPE on rollouts of outside agents, which ask the policy at ADDRESS.

    It is `harness train` with rollout.gateway and agent.context = "transcript". Beyond this machine
    it needs the token AGENTGYMS_GATEWAY_TOKEN.
    """
    from harness import config as configs
    from harness.training import setup

    own = ("agent.context='transcript'", f"rollout.gateway='{address}'")
    config = configs.load(recipe, (*own, *overrides))
    click.echo(f"agents ask the policy at http://{config.rollout.gateway}/v1")
    setup.start(config, announce=click.echo).run()
