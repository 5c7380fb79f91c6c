"""Command line: `agentgyms export`."""

from __future__ import annotations

from pathlib import Path

import click

from agentgyms.adapters.export import FORMS, rows
from agentgyms.cli.printing import echo, echo_data
from agentgyms.core import serialization
from agentgyms.core.errors import BadOption, not_written
from agentgyms.data.writing import write_named
from agentgyms.recording.recording_format import recordings_in


@click.command()
@click.argument("recordings", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(list(FORMS)),
    required=True,
    help="What a row holds: see docs/recordings.md.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="Write to this file, which is replaced; without it, to standard output.",
)
def export(recordings: tuple[Path, ...], form: str, output: Path | None) -> None:
    """Write the episodes of RECORDINGS as JSON lines, a row for each, for other programs.

    RECORDINGS are files of `agentgyms record`, `harness eval` and others, and folders of them.
    """
    if output is not None:
        read = (file.resolve() for path in recordings for file in recordings_in(path))
        if output.resolve() in read:
            raise BadOption(f"--output {output!s:.150} is a recording: give another file")
    made = rows(recordings, form)
    text = "".join(f"{serialization.dumps(row)}\n" for row in made)
    if output is None:
        echo_data(text)
        return
    try:
        write_named(output, text)
    except OSError as e:
        raise not_written(output, e) from e
    echo(f"{len(made)} episodes in {output}", err=True)
