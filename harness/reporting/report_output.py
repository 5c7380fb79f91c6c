"""Prints and writes the tables, curves and pages of `harness report`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from agentgyms.cli.printing import echo
from agentgyms.core.errors import AgentGymsError, not_written
from agentgyms.data.writing import write_named
from harness.reporting.curves import figure_curves, training_curves
from harness.reporting.results import training_runs
from harness.reporting.results.loading import LoadedEvaluation, load_all
from harness.reporting.results.run_differences import run_differences
from harness.reporting.results.training_runs import LAST, Choice
from harness.reporting.tables import details, formats, rows, settled, sweeps
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

    Raises `ResultError` for missing or damaged results, `BadOption` for a file that cannot be
    written.
    """
    plain = form == "markdown" and not (
        reported or compare or curve or html or output or bold or sweep
    )
    if plain and choice == LAST and len(paths) == 1 and training_runs.is_run(paths[0]):
        echo(_drawn_again(paths[0]))
        return
    if compare and choice.count > 1:
        raise click.UsageError(
            f"--paired compares evaluations, and --checkpoint {choice.name} is a mean: leave one"
        )
    if compare and form != "markdown":
        raise click.UsageError(f"--paired is written in Markdown only: leave out --format {form}")
    evaluations = load_all(paths, choice)
    text = _text(evaluations, form, bold=bold, reported=reported)
    if compare:
        text = f"{text}\n{details.comparison(evaluations)}"
    with _put_out(text, output):
        if curve:
            found = [training_runs.read(path) for path in paths if training_runs.is_run(path)]
            if not found:
                raise ResultError(
                    "--curve draws training runs, and none is given: expected a folder with "
                    "evaluations/"
                )
            training_curves.draw_success(curve, training_runs.group_by_settings(found))
        if sweep:
            sweeps.draw(sweep, sweeps.points(rows.build(evaluations)))
        if html:
            from harness.reporting.evaluation_page import page

            write_named(html, page.render(evaluations))


@contextmanager
def _put_out(text: str, output: Path | None) -> Iterator[None]:
    """Print or write a text once other files are written; an error names its file."""
    try:
        yield
        if output:
            write_named(output, text)
    except AgentGymsError:
        raise
    except OSError as e:
        raise not_written(e.filename or "the report", e) from e
    if not output:
        echo(text)


def tables(paths: Sequence[Path], choice: Choice = LAST) -> str:
    """Return the tables of results in Markdown, as `harness report` prints them."""
    return _text(load_all(paths, choice), "markdown", bold=False, reported=False)


def filling(paths: Sequence[Path]) -> str:
    """Return the totals of a series' finished runs, by seed, as a table in Markdown."""
    return sweeps.over_seeds(rows.build(load_all(paths)), fewest=1)


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
        above = formats.settings_to_latex(differences)
        return "\n".join(filter(None, [above, formats.to_latex(built, bold=bold)]))
    if len(evaluations) == 1 and not reported:
        text = details.to_markdown(evaluations[0])
    else:
        text = formats.tables_to_markdown(built, bold=bold)
    above = formats.settings_to_markdown(differences)
    below = [
        sweeps.over_seeds(built),
        settled.markdown(built),
        sweeps.markdown(sweeps.points(built)),
    ]
    return "\n".join(filter(None, [above, text, *below]))


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
    """Print the figures that training runs have logged, or write them; see `put_out`."""
    if form == "latex":
        raise click.UsageError("--figures is written in Markdown or as CSV: leave --format latex")
    other = [path for path in paths if not training_runs.is_run(path)]
    if other:
        raise ResultError(f"--figures reads training runs: {other[0]} has no evaluations/")
    runs = training_runs.group_by_settings([training_runs.read(path) for path in paths])
    found = figure_curves.read(runs, [name.strip() for name in figures], from_step)
    text = figure_curves.to_csv(found) if form == "csv" else figure_curves.to_markdown(found)
    with _put_out(text, output):
        if curve:
            figure_curves.draw(curve, found, smooth)
