"""Command line: `agentgyms setup appworld`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import get_args

import click

from agentgyms.cli.printing import echo
from agentgyms.data import datasets
from agentgyms.data.manifests import MANIFEST
from agentgyms.envs.appworld.engine import sources
from agentgyms.envs.appworld.engine.data_roots import SPLITS, Roots, find_data
from agentgyms.envs.appworld.sandbox import install


@click.group()
def setup() -> None:
    """Install engines that need a Python environment of their own."""


@setup.command()
@click.option(
    "--python", "base", metavar="EXE", help="Python 3.11 or later to make the environment with."
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where the environment goes; by default below the data home.",
)
@click.option(
    "--data",
    "source",
    default="generated",
    show_default=True,
    metavar="generated|official|PATH",
    help="Build our own tasks, download AppWorld's, or take AppWorld's from a folder.",
)
@click.option("--check", is_flag=True, help="Change nothing: say whether engine and data are here.")
def appworld(base: str | None, folder: Path | None, source: str, check: bool) -> None:
    """Install the AppWorld engine and its tasks; what is there already is kept.

    AppWorld's code and data are unpacked on this machine. Its terms forbid to publish them in plain
    text: keep them out of repositories and images.
    """
    if source not in get_args(sources.Source) and not check:
        find_data(Path(source))  # fails before the long installation
    if check:
        python = str(install.interpreter(folder)) if folder else install.python()
        install.check(python)
    else:
        python = str(install.install(folder, base))
    echo(f"engine: AppWorld {install.VERSION} in {python}")
    roots = _data(source, python, check=check)
    tasks = ", ".join(f"{split} {len(roots.tasks(split))}" for split in SPLITS)
    echo(f"tasks: {tasks} in {roots.world.parent}")
    if folder is not None:
        echo(f"to use it: export {install.PYTHON_VARIABLE}={python}")


def _data(source: str, python: str, *, check: bool) -> Roots:
    """Build or import the tasks, or only find them."""
    if source == "generated" and check:
        return sources.find_generated()
    if source == "generated":
        echo("tasks: our own are built now, unless they are here")
        return sources.find("generated", None, python)
    if check:
        return sources.find("official", None if source == "official" else source, python)
    if source != "official":
        datasets.import_data("appworld", source)
    elif not (datasets.home() / "appworld" / MANIFEST).exists():
        with tempfile.TemporaryDirectory(prefix="agentgyms-appworld-") as scratch:
            datasets.import_data("appworld", install.download(python, Path(scratch)))
    return sources.find("official", None, python)
