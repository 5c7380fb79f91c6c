"""Prints and writes the tables, curves and pages of `harness report`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from agentgyms.core.errors import AgentGymsError, not_written
from harness.reporting.curves import figure_curves, success_curves, sweep_curves
from harness.reporting.results import training_runs
from harness.reporting.results.choice import LAST, Choice
from harness.reporting.results.loading import LoadedEvaluation, load_all
from harness.reporting.results.run_differences import run_differences
from harness.reporting.results.training_runs import TrainingRun
from harness.reporting.tables import (
    comparison,
    details,
    formats,
    over_seeds,
    rows,
    run_settings,
    sweeps,
)
from harness.runs import fsync
from harness.types.errors import ResultError


def put_out(
    paths: Sequence[Path],
    form: str,
    choice: Choice = LAST,
    *,
    bold: bool,
    reported: bool,
    compare: bool,
    curve: Path | None,
    html: Path | None,
    output: Path | None,
    sweep: Path | None = None,
) -> None:
    """Print the tables of results, or write them; see `harness report --help`.

    Raises:
        ResultError: A folder has no results, or a damaged file.
        BadOption: A file cannot be written.
    """
    plain = form == "markdown" and not (
        reported or compare or curve or html or output or bold or sweep
    )
    if plain and choice == LAST and len(paths) == 1 and training_runs.is_run(paths[0]):
        click.echo(_drawn_again(paths[0]))
        return
    if compare:
        _check_comparable(form, choice)
    evaluations = load_all(paths, choice)
    text = _text(evaluations, form, bold=bold, reported=reported)
    if compare:
        text = f"{text}\n{comparison.markdown(evaluations)}"
    with _writing():
        if curve:
            success_curves.draw(curve, training_runs.group_by_settings(_runs(paths)))
        if sweep:
            sweep_curves.draw(sweep, sweeps.points(rows.build(evaluations)))
        if html:
            from harness.reporting.evaluation_page import page

            page.write(html, evaluations)
        if output:
            fsync.write(output, text)
    if not output:
        click.echo(text)


@contextmanager
def _writing() -> Iterator[None]:
    """Name the file of an `OSError` that is no error of the package."""
    try:
        yield
    except AgentGymsError:
        raise
    except OSError as e:
        raise not_written(e.filename or "the report", e) from e


def tables(paths: Sequence[Path], choice: Choice = LAST) -> str:
    """Return the tables of results in Markdown, as `harness report` prints them."""
    return _text(load_all(paths, choice), "markdown", bold=False, reported=False)


def _drawn_again(folder: Path) -> str:
    from harness.reporting import run_report

    run_report.write(folder)
    drawn = [folder / name for name in ("curve.png", "training.png") if (folder / name).is_file()]
    table = (folder / "table.md").read_text(encoding="utf-8")
    return "\n".join([table, *(f"{path.stem + ':':10}{path}" for path in drawn)])


def _text(evaluations: Sequence[LoadedEvaluation], form: str, *, bold: bool, reported: bool) -> str:
    built = rows.build(evaluations, with_reported=reported)
    if form == "csv":
        return formats.to_csv(built)
    differences = run_differences(evaluations)
    if form == "latex":
        above = run_settings.to_latex(differences)
        return "\n".join(filter(None, [above, formats.to_latex(built, bold=bold)]))
    alone = len(evaluations) == 1 and not reported
    text = (
        details.to_markdown(evaluations[0])
        if alone
        else formats.tables_to_markdown(built, bold=bold)
    )
    above = run_settings.to_markdown(differences)
    below = [over_seeds.markdown(built), sweeps.markdown(sweeps.points(built))]
    return "\n".join(filter(None, [above, text, *below]))


def _check_comparable(form: str, choice: Choice) -> None:
    if choice.count > 1:
        raise click.UsageError(
            f"--paired compares evaluations, and --checkpoint {choice.name} is a mean: leave one"
        )
    if form != "markdown":
        raise click.UsageError(f"--paired is written in Markdown only: leave out --format {form}")


def _runs(paths: Sequence[Path]) -> list[TrainingRun]:
    runs = [training_runs.read(folder) for folder in paths if training_runs.is_run(folder)]
    if not runs:
        raise ResultError(
            "--curve draws training runs, and none is given: expected a folder with evaluations/"
        )
    return runs


def put_out_figures(
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
    with _writing():
        if curve:
            figure_curves.draw(curve, found, smooth)
        if output:
            fsync.write(output, text)
    if not output:
        click.echo(text)
