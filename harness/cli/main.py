"""Command line: `harness train · eval · report · leaderboard · export · credit · recipes ...`."""

from __future__ import annotations

import logging
import sys

import click

from agentgyms.core import imports, tracing
from agentgyms.core.errors import AgentGymsError
from harness.cli.credit import credit, list_methods
from harness.cli.evaluate import evaluate
from harness.cli.export import export
from harness.cli.gateway import gateway
from harness.cli.leaderboard import leaderboard
from harness.cli.report import report
from harness.cli.train import train
from harness.types.errors import TrainingStopped


@click.group()
@click.version_option(package_name="agentgyms")
@click.option("--verbose", is_flag=True, help="Log what happens, retries included.")
def main(verbose: bool) -> None:
    """Train and evaluate language agents."""
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING)
    tracing.set_up("agentgyms-harness")


main.add_command(train)
main.add_command(evaluate)
main.add_command(report)
main.add_command(leaderboard)
main.add_command(export)
main.add_command(gateway)
main.add_command(credit)
main.add_command(list_methods)


@main.command()
def recipes() -> None:
    """List the built-in recipes, and the models that take the place of theirs."""
    from harness import config as configs

    for name, about in configs.list_recipes().items():
        click.echo(f"{name:32} {about}")
    for name, about in configs.list_models().items():
        click.echo(f"{f'RECIPE+{name}':32} {about}")


def run() -> None:
    """Entry point: prints errors of this package and a missing extra in one line, no traceback.

    After a signal the exit status is 128 plus the signal's number, as in shells.
    """
    try:
        with imports.needed("harness"):
            main(standalone_mode=True)
    except TrainingStopped as e:
        click.echo(str(e), err=True)
        sys.exit(e.exit_code)
    except AgentGymsError as e:
        click.echo(f"error: {e}", err=True)
        sys.exit(2)
