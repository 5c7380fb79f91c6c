"""Prints and writes the table and curves of `harness report --figures`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from agentgyms.core.errors import not_written
from harness.reporting.curves import figure_curves
from harness.reporting.results import training_runs
from harness.runs import fsync
from harness.types.errors import ResultError


def put_out(
    paths: Sequence[Path],
    figures: Sequence[str],
    form: str,
    from_step: int = 0,
    *,
    smooth: int = 1,
    curve: Path | None = None,
    output: Path | None = None,
) -> None:
    """Print the figures that training runs have logged, or write them.

    Raises:
        ResultError: A folder is no training run, or no run has a figure.
        BadOption: A file cannot be written.
    """
    if form == "latex":
        raise click.UsageError("--figures is written in Markdown or as CSV: leave --format latex")
    other = [path for path in paths if not training_runs.is_run(path)]
    if other:
        raise ResultError(f"--figures reads training runs: {other[0]} has no evaluations/")
    runs = training_runs.group_by_settings([training_runs.read(path) for path in paths])
    found = figure_curves.read(runs, [name.strip() for name in figures], from_step)
    text = figure_curves.to_csv(found) if form == "csv" else figure_curves.to_markdown(found)
    try:
        if curve:
            figure_curves.draw(curve, found, smooth)
        if output:
            fsync.write(output, text)
    except OSError as e:
        raise not_written(e.filename or "the report", e) from e
    if not output:
        click.echo(text)
