"""Command line: `harness train · eval · report · leaderboard · export · credit · recipes ...`."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import click

from agentgyms.cli import last_resort
from agentgyms.cli.printing import echo, log_handler
from agentgyms.core import imports, tracing
from agentgyms.core.errors import AgentGymsError
from agentgyms.data import terminals
from harness.cli.credit import credit, list_methods
from harness.cli.evaluate import evaluate
from harness.cli.getting_ready import getting_ready
from harness.cli.report import report
from harness.cli.train import train
from harness.types.errors import TrainingStopped


@click.group()
@click.version_option(package_name="agentgyms")
@click.option("--verbose", is_flag=True, help="Log what happens, retries included.")
def main(verbose: bool) -> None:
    """Train and evaluate language agents."""
    level = logging.INFO if verbose else logging.WARNING
    logging.basicConfig(level=level, handlers=[log_handler(logging.BASIC_FORMAT)])
    tracing.set_up("agentgyms-harness")


main.add_command(train)
main.add_command(evaluate)
main.add_command(report)
main.add_command(credit)
main.add_command(list_methods)


@main.command()
def recipes() -> None:
    """List the built-in recipes, and the models that take the place of theirs."""
    from harness import config as configs

    for name, about in configs.list_recipes().items():
        echo(f"{name:32} {about}")
    for name, about in configs.list_models().items():
        echo(f"{f'RECIPE+{name}':32} {about}")


@main.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("leaderboard"),
    show_default=True,
    help="The site's folder.",
)
@imports.needed("eval")
def leaderboard(folder: Path, output: Path) -> None:
    """Make a site out of the folders of evaluations in FOLDER, and verify every score.

    Each recorded episode is played again here, in this process; what does not replay is not listed,
    and named with its reason. One table for each environment, data version and protocol; see
    docs/leaderboard.md.
    """
    from harness.reporting.leaderboard import site

    made = site.build(folder, output)
    found = made.listed + len(made.not_listed)
    echo(f"{made.listed} of {found} evaluations listed, in {len(made.boards)} tables")
    for board in made.boards:
        echo(f"\n{board.title}{''.join(f'; {text}' for text in board.entries[0].departures)}")
        for entry in board.entries:
            names = ", ".join((entry.label, *entry.copies))
            echo(f"  {100 * entry.success:5.1f} %  {entry.agent.text} ({names})")
    if made.not_listed:
        echo("\nnot listed:")
    for one in made.not_listed:
        echo(f"  {one.label}: {one.reason}")
    echo(f"\nsite: {output / site.INDEX}")


@main.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("folder", metavar="TARGET", type=click.Path(path_type=Path))
@click.option(
    "--checkpoint",
    default="newest",
    show_default=True,
    metavar="newest|best|STEP",
    help="Which of the run's.",
)
@click.option(
    "--precision",
    type=click.Choice(["bfloat16", "float32"]),
    help="Of the weights, with adapters merged in; without it files are as they were saved, and "
    "GGUF in float32.",
)
@click.option(
    "--like",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE.gguf",
    help="A GGUF file of the model before training, for the header of the new one; without it "
    "that which the run began with.",
)
@click.option(
    "--push", metavar="OWNER/NAME", help="Upload it to the Hub, as the user of HF_TOKEN, private."
)
@imports.needed("harness")
def export(
    run: Path,
    folder: Path,
    checkpoint: str,
    precision: str | None,
    like: Path | None,
    push: str | None,
) -> None:
    """Write the model of the training run RUN to the new folder or GGUF file TARGET.

    A folder holds weights, tokenizer and chat template, README.md (a card with settings,
    evaluations and provenance) and training_run.json, by which `harness eval --model TARGET` plays
    it as it was trained. The optimizer's state stays in the run.

    A TARGET whose name ends with .gguf is one file, for llama.cpp and programs built on it.
    """
    from harness.training import model_export

    if push is not None and folder.suffix.lower() == ".gguf":
        raise click.UsageError("--push uploads a folder: give TARGET another name, or leave it out")
    made = model_export.write(run, folder, checkpoint, precision, like)
    echo(f"step {made.step} of {run} in {folder}")
    if push is not None:
        echo(f"uploaded to {model_export.push(folder, push)}")


@main.command()
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

    own = ("agent.context='transcript'", f"rollout.gateway='{address}'")
    config = configs.load(recipe, (*own, *overrides))
    echo(f"agents ask the policy at http://{config.rollout.gateway}/v1")
    with getting_ready() as announce:
        from harness.training import setup

        setup.start(config, announce=announce).run()


def run() -> None:
    """Entry point: prints each error in one line; a signal gives the status 128 plus its number."""
    last_resort.run("harness", _run)


def _run() -> None:
    try:
        with imports.needed("harness"):
            main(standalone_mode=True, color=terminals.set_up())
    except TrainingStopped as e:
        echo(e, err=True)
        sys.exit(e.exit_code)
    except AgentGymsError as e:
        echo(f"error: {e}", err=True)
        sys.exit(2)
