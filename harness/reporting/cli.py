"""`harness report`: tables, comparisons, curves and pages of results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from agentgyms import extras
from harness.errors import ResultError
from harness.reporting import curves, details, paired, rendering, tables, training_runs
from harness.reporting.loading import Evaluated, load_all

_FORMATS = ("markdown", "latex", "csv")


def _in_a_folder(_: click.Context, __: click.Parameter, value: Path | None) -> Path | None:
    """Refuse a file that cannot be written, before anything is read."""
    if value is not None and not value.parent.is_dir():
        raise click.BadParameter(f"there is no folder {value.parent}: make it first")
    return value


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--format", "form", type=click.Choice(_FORMATS), default="markdown", help="Of the tables."
)
@click.option("--bold", is_flag=True, help="Best number of each base model and column in bold.")
@click.option("--reported", is_flag=True, help="Papers' numbers beside these, labelled.")
@click.option("--paired", "compare", is_flag=True, help="Compare evaluations task by task.")
@click.option(
    "--curve",
    type=click.Path(path_type=Path, dir_okay=False),
    callback=_in_a_folder,
    help="Draw success over training steps: a .png or .svg file.",
)
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    callback=_in_a_folder,
    help="Write one page with the figures and every episode.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    callback=_in_a_folder,
    help="Write the tables into a file.",
)
@extras.needed("eval")
def report(
    paths: tuple[Path, ...],
    form: str,
    bold: bool,
    reported: bool,
    compare: bool,
    curve: Path | None,
    html: Path | None,
    output: Path | None,
) -> None:
    """Tables of the results in PATHS: folders of evaluations and of training runs.

    Training runs that differ in nothing but their seed are one row, mean ± standard deviation, and
    so are evaluations of one model, or of such runs' checkpoints, with other seeds. For one
    training run alone its table and pictures are made again.
    """
    plain = form == "markdown" and not (reported or compare or curve or html or output or bold)
    if plain and len(paths) == 1 and training_runs.is_run(paths[0]):
        click.echo(_drawn_again(paths[0]))
        return
    evaluations = load_all(paths)
    text = _text(evaluations, form, bold=bold, reported=reported)
    if compare:
        text = _with_comparison(text, form, evaluations)
    if curve:
        _draw(curve, paths)
    if html:
        _write_page(html, evaluations)
    if output:
        output.write_text(text, encoding="utf-8")
    else:
        click.echo(text)


def _drawn_again(folder: Path) -> str:
    from harness import report as of_training

    of_training.write(folder)
    drawn = [folder / name for name in ("curve.png", "training.png") if (folder / name).is_file()]
    table = (folder / "table.md").read_text(encoding="utf-8")
    return "\n".join([table, *(f"{path.stem + ':':10}{path}" for path in drawn)])


def _text(evaluations: Sequence[Evaluated], form: str, *, bold: bool, reported: bool) -> str:
    if form == "markdown" and len(evaluations) == 1 and not reported:
        return details.page(evaluations[0])
    built = tables.build(evaluations, with_reported=reported)
    if form == "csv":
        return rendering.comma_separated(built)
    return (
        rendering.latex(built, bold=bold)
        if form == "latex"
        else rendering.markdown(built, bold=bold)
    )


def _with_comparison(text: str, form: str, evaluations: Sequence[Evaluated]) -> str:
    if form != "markdown":
        raise click.UsageError(f"--paired is written in Markdown only: leave out --format {form}")
    return f"{text}\n{paired.markdown(evaluations)}"


def _draw(path: Path, paths: Sequence[Path]) -> None:
    runs = [training_runs.read(folder) for folder in paths if training_runs.is_run(folder)]
    if not runs:
        raise ResultError(
            "--curve draws training runs, and none is given: expected a folder with evaluations/"
        )
    curves.draw(path, training_runs.by_settings(runs))


def _write_page(path: Path, evaluations: Sequence[Evaluated]) -> None:
    from harness.reporting import page

    page.write(path, evaluations)
