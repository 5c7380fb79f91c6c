"""Command line: `harness train · eval · report · recipes · methods · credit`."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

import click

from agentgyms import extras
from agentgyms.errors import AgentGymsError
from harness.credit_view.cli import credit, list_methods
from harness.evaluation.cli import evaluate
from harness.reporting.cli import report


@click.group()
@click.version_option(package_name="agentgyms")
@click.option("--verbose", is_flag=True, help="Log what happens, retries included.")
def main(verbose: bool) -> None:
    """Train and evaluate language agents."""
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING)


main.add_command(evaluate)
main.add_command(report)
main.add_command(credit)
main.add_command(list_methods)


@main.command()
@click.argument("recipe", required=False)
@click.option(
    "--set", "overrides", multiple=True, metavar="SECTION.KEY=VALUE", help="Change a setting."
)
@click.option(
    "--resume", type=click.Path(path_type=Path), help="Go on with the run in this folder."
)
@click.option("--print-config", is_flag=True, help="Print the resolved configuration and stop.")
def train(
    recipe: str | None, overrides: tuple[str, ...], resume: Path | None, print_config: bool
) -> None:
    """Train with RECIPE: a TOML file, or the name of one that is built in (`harness recipes`)."""
    if (recipe is None) == (resume is None):
        raise click.UsageError("give a recipe, or --resume FOLDER")
    if resume is not None and (overrides or print_config):
        raise click.UsageError("a resumed run keeps its settings: leave --set and --print-config")
    from harness import config as configs
    from harness import settings, starting

    if resume is not None:
        trainer = starting.resume(resume)
    else:
        config = configs.load(str(recipe), overrides)
        if print_config:
            click.echo(json.dumps(configs.to_dict(settings.resolve(config)), indent=1))
            return
        trainer = starting.start(config)
    trainer.run()
    folder = trainer.folder.path
    click.echo(f"\n{(folder / 'table.md').read_text(encoding='utf-8')}")
    click.echo(f"curve: {folder / 'curve.png'}\nrun:   {folder}")


@main.command()
def recipes() -> None:
    """List the built-in recipes."""
    from harness import config as configs

    for path in sorted(configs.RECIPES.glob("*.toml")):
        first = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("#").strip()
        click.echo(f"{path.stem:32} {first}")


def run() -> None:
    """Entry point: errors of this package and a missing extra end in one line, no traceback."""
    try:
        with extras.needed("harness"):
            main(standalone_mode=True)
    except AgentGymsError as e:
        click.echo(f"error: {e}", err=True)
        sys.exit(2)
