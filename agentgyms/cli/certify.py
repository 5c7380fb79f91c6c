"""Command line: `agentgyms certify`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from agentgyms.certification import Verdict
from agentgyms.certification import certify as examine
from agentgyms.certification.certificate import PAGE
from agentgyms.cli.printing import echo
from agentgyms.cli.settings import parsed, set_option
from agentgyms.core.errors import not_written
from agentgyms.registration import short_name

_MARKS = {"passed": "ok", "failed": "FAIL", "not run": "--"}


@click.command()
@click.argument("env_id")
@set_option
@click.option("--tasks", default=10, show_default=True, help="Number of tasks, over the split.")
@click.option("--seed", default=0, show_default=True, help="Seed of episodes and chance.")
@click.option(
    "--learning",
    default=20,
    show_default=True,
    help="Episodes that the learner plays of each of its tasks; 0 leaves it out.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the page and the JSON; without it, certificates/NAME.",
)
def certify(
    env_id: str, pairs: tuple[str, ...], tasks: int, seed: int, learning: int, output: Path | None
) -> None:
    """Check ENV_ID against the quality bar, and write a certificate: a page and JSON.

    The exit status is 1 if a check fails.
    """
    folder = output or Path("certificates", short_name(env_id))
    try:
        folder.mkdir(parents=True, exist_ok=True)  # fails before the examination
    except OSError as e:
        raise not_written(folder, e) from e
    certificate = examine(
        env_id, parsed(pairs), tasks=tasks, seed=seed, learning=learning, on_verdict=_show
    )
    try:
        certificate.write(folder)
    except OSError as e:
        raise not_written(folder, e) from e
    words = "certified" if certificate.certified else "not certified"
    echo(f"{env_id}: {words}; the page is {folder / PAGE}")
    if certificate.failed:
        sys.exit(1)


def _show(name: str, verdict: Verdict) -> None:
    echo(f"{_MARKS[verdict.status]:5}{name:10} {' '.join(verdict.found.split())}")
    if verdict.status == "failed":
        echo(f"     expected: {verdict.expected}\n     to do: {verdict.advice}")
