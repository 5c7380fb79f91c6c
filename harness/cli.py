"""Command line: `harness train · eval · report · recipes · methods · credit`."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agentgyms import extras
from agentgyms.errors import AgentGymsError
from harness.credit_view.cli import credit, list_methods
from harness.errors import TrainingStopped
from harness.evaluation.cli import evaluate
from harness.reporting.cli import report

if TYPE_CHECKING:
    from harness.config import Config


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
@click.option(
    "--dry-run", is_flag=True, help="Print what would run, the memory it needs, what is missing."
)
@click.option("--gpus", type=click.IntRange(min=1), help="With --dry-run: plan for so many GPUs.")
def train(
    recipe: str | None,
    overrides: tuple[str, ...],
    resume: Path | None,
    print_config: bool,
    dry_run: bool,
    gpus: int | None,
) -> None:
    """Train with RECIPE: a TOML file, or the name of one that is built in (`harness recipes`)."""
    if (recipe is None) == (resume is None):
        raise click.UsageError("give a recipe, or --resume FOLDER")
    if resume is not None and (overrides or print_config or dry_run):
        raise click.UsageError(
            "a resumed run keeps its settings: leave --set, --print-config and --dry-run"
        )
    if gpus is not None and not dry_run:
        raise click.UsageError("--gpus is for --dry-run: torchrun starts a process for each GPU")
    from harness import config as configs
    from harness import settings, starting
    from harness.ranks import joined

    config = None if resume is not None else configs.load(str(recipe), overrides)
    if config is not None:
        if print_config:
            click.echo(json.dumps(configs.to_dict(settings.resolve(config)), indent=1))
            return
        if dry_run:
            _tell_plan(config, gpus)
            return
    with joined() as ranks:
        if config is None:
            trainer = starting.resume(Path(str(resume)), ranks)
        else:
            trainer = starting.start(config, ranks)
        trainer.run()
    if not ranks.is_first:
        return
    folder = trainer.folder.path
    click.echo(f"\n{(folder / 'table.md').read_text(encoding='utf-8')}")
    shown = {"curve": folder / "curve.png", "training": folder / "training.png", "run": folder}
    click.echo("\n".join(f"{name + ':':10}{path}" for name, path in shown.items()))


def _tell_plan(config: Config, gpus: int | None) -> None:
    """Print what a run would do; end with status 2 if it could not start."""
    from harness.planning import plan

    told = plan(config, gpus)
    click.echo(told.text())
    if told.missing:
        sys.exit(2)


@main.command()
def recipes() -> None:
    """List the built-in recipes."""
    from harness import config as configs

    for path in sorted(configs.RECIPES.glob("*.toml")):
        first = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("#").strip()
        click.echo(f"{path.stem:32} {first}")


def run() -> None:
    """Entry point: errors of this package and a missing extra end in one line, no traceback.

    A run that a signal stopped ends as shells have it: with 128 and the signal's number.
    """
    try:
        with extras.needed("harness"):
            main(standalone_mode=True)
    except TrainingStopped as e:
        click.echo(str(e), err=True)
        sys.exit(e.exit_code)
    except AgentGymsError as e:
        click.echo(f"error: {e}", err=True)
        sys.exit(2)
