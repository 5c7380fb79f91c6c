"""Command line: `harness train · eval · report · recipes · methods · credit`."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agentgyms.core import extras
from agentgyms.core.errors import AgentGymsError
from harness.cli.credit import credit, list_methods
from harness.cli.evaluate import evaluate
from harness.cli.report import report
from harness.types.errors import TrainingStopped

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
@click.option("--help-config", is_flag=True, help="List all settings with their words and stop.")
@click.option(
    "--dry-run", is_flag=True, help="Print what would run, the memory it needs, what is missing."
)
@click.option("--gpus", type=click.IntRange(min=1), help="With --dry-run: plan for so many GPUs.")
def train(
    recipe: str | None,
    overrides: tuple[str, ...],
    resume: Path | None,
    print_config: bool,
    help_config: bool,
    dry_run: bool,
    gpus: int | None,
) -> None:
    """Train with RECIPE: a TOML file, or the name of one that is built in (`harness recipes`)."""
    if help_config:
        from harness.config import reference, schema

        click.echo(reference.as_text(schema.Config))
        return
    if (recipe is None) == (resume is None):
        raise click.UsageError("give a recipe, or --resume FOLDER")
    if resume is not None and (overrides or print_config or dry_run):
        raise click.UsageError(
            "a resumed run keeps its settings: leave --set, --print-config and --dry-run"
        )
    if gpus is not None and not dry_run:
        raise click.UsageError("--gpus is for --dry-run: torchrun starts a process for each GPU")
    from harness import config as configs
    from harness.distributed.process_group import torchrun_processes
    from harness.preflight import resolve

    config = None if resume is not None else configs.load(str(recipe), overrides)
    if config is not None:
        if print_config:
            click.echo(json.dumps(configs.to_dict(resolve.resolve(config)), indent=1))
            return
        if dry_run:
            _print_plan(config, gpus)
            return
    with torchrun_processes() as processes:
        from harness.training import setup

        if config is None:
            trainer = setup.resume(Path(str(resume)), processes)
        else:
            trainer = setup.start(config, processes)
        trainer.run()
    if processes.is_first:
        _show_results(trainer.folder.path)


def _show_results(folder: Path) -> None:
    """Print a run's table and where its files are."""
    if (folder / "table.md").is_file():
        click.echo(f"\n{(folder / 'table.md').read_text(encoding='utf-8')}")
    shown = {"curve": folder / "curve.png", "training": folder / "training.png", "run": folder}
    click.echo("\n".join(f"{name + ':':10}{path}" for name, path in shown.items()))


def _print_plan(config: Config, gpus: int | None) -> None:
    """Print the plan of a run; exit with status 2 if it cannot start."""
    from harness.preflight.planning import plan

    planned = plan(config, gpus)
    click.echo(planned.text())
    if planned.missing:
        sys.exit(2)


@main.command()
def recipes() -> None:
    """List the built-in recipes."""
    from harness import config as configs

    for name, about in configs.list_recipes().items():
        click.echo(f"{name:32} {about}")


def run() -> None:
    """Entry point: prints errors of this package and a missing extra in one line, no traceback.

    After a signal the exit status is 128 plus the signal's number, as in shells.
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
