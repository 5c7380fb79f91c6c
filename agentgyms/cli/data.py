"""Command line: `agentgyms data list · fetch · import · verify · export`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from agentgyms.cli.printing import echo
from agentgyms.core.errors import not_written
from agentgyms.data import datasets as data_sets
from agentgyms.data.datasets import Status

_name = click.argument("name")
_allow_other = click.option(
    "--allow-other", is_flag=True, help="Accept contents that are not the release's."
)


@click.group()
def data() -> None:
    """Data sets: what is here, download, import, check."""


@data.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_command(as_json: bool) -> None:
    """List the data sets and which are installed."""
    found = data_sets.status()
    if as_json:
        rows = {
            s.name: {"folder": s.folder and str(s.folder), "parts": s.parts, "damage": s.damage}
            for s in found
        }
        echo(json.dumps(rows, indent=1))
        return
    echo(f"home: {data_sets.home()}")
    for status in found:
        echo(f"{status.name:12} {describe(status)}")


def describe(status: Status) -> str:
    """Return a data set's status in one line."""
    if status.folder is None:
        return f"not here: {data_sets.command(status.name)}"
    if status.damage:
        return status.damage
    parts = ", ".join(f"{split} {part.num_items}" for split, part in status.parts.items())
    other = f" (not the release: {'; '.join(status.differences)})" if status.differences else ""
    return f"{parts} in {status.folder}{other}"


@data.command()
@_name
@_allow_other
def fetch(name: str, allow_other: bool) -> None:
    """Download the data set NAME; a broken download goes on where it stopped."""
    echo(data_sets.fetch(name, allow_other=allow_other))


@data.command("import")
@_name
@click.argument("path", type=click.Path(path_type=Path))
@_allow_other
def import_command(name: str, path: Path, allow_other: bool) -> None:
    """Take the data set NAME from a folder or archive PATH."""
    echo(data_sets.import_data(name, path, allow_other=allow_other))


@data.command()
@_name
def verify(name: str) -> None:
    """Check every file of the data set NAME against its checksum."""
    echo(describe(data_sets.verify(name)))


@data.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--split", default="valid_seen", show_default=True)
@click.option("--rooms", type=click.Choice(["small", "large"]), default="small", show_default=True)
def export(folder: Path, split: str, rooms: str) -> None:
    """Write generated ALFWorld tasks to FOLDER as games that the official engine plays."""
    from agentgyms.envs.alfworld.generated.writer import write_games

    try:
        games = write_games(split, folder, rooms=rooms)
    except OSError as e:
        raise not_written(folder, e) from e
    echo(f"{len(games)} games in {folder}")
