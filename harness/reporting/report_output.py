"""Prints and writes the tables, curves and pages of `harness report`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from agentgyms.core.errors import AgentGymsError, not_written
from harness.reporting.curves import success_curves, sweep_curves
from harness.reporting.results import training_runs
from harness.reporting.results.choice import LAST, Choice
from harness.reporting.results.loading import LoadedEvaluation, load_all
from harness.reporting.results.run_differences import run_differences
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
    try:
        _draw(paths, evaluations, curve, sweep)
        if html:
            _write_page(html, evaluations)
        if output:
            fsync.write(output, text)
    except AgentGymsError:
        raise
    except OSError as e:
        raise not_written(e.filename or "the report", e) from e
    if not output:
        click.echo(text)


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


def _draw(
    paths: Sequence[Path],
    evaluations: Sequence[LoadedEvaluation],
    curve: Path | None,
    sweep: Path | None,
) -> None:
    if curve:
        _draw_curve(curve, paths)
    if sweep:
        sweep_curves.draw(sweep, sweeps.points(rows.build(evaluations)))


def _draw_curve(path: Path, paths: Sequence[Path]) -> None:
    runs = [training_runs.read(folder) for folder in paths if training_runs.is_run(folder)]
    if not runs:
        raise ResultError(
            "--curve draws training runs, and none is given: expected a folder with evaluations/"
        )
    success_curves.draw(path, training_runs.group_by_settings(runs))


def _write_page(path: Path, evaluations: Sequence[LoadedEvaluation]) -> None:
    from harness.reporting.evaluation_page import page

    page.write(path, evaluations)
