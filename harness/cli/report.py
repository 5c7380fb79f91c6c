"""`harness report`: tables, comparisons, curves and pages of results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from agentgyms.core import imports

_FORMATS = ("markdown", "latex", "csv")
_RESULT_OPTIONS = ("bold", "reported", "compare", "html", "sweep", "checkpoint")
_FIGURE_OPTIONS = ("from_step", "smooth")


def _check_folder(_: click.Context, __: click.Parameter, value: Path | None) -> Path | None:
    """Check that the file's folder exists, before anything is read; return a link's target."""
    if value is not None and not value.parent.is_dir():
        raise click.BadParameter(f"there is no folder {value.parent}: make it first")
    return value.resolve() if value is not None and value.is_symlink() else value


def _file(name: str, words: str) -> Callable[[Any], Any]:
    kind = click.Path(path_type=Path, dir_okay=False)
    return click.option(name, type=kind, callback=_check_folder, help=words)


def _check_options(figures: bool) -> None:
    """Raise `UsageError` for an option that only the other kind of table reads."""
    context = click.get_current_context()
    others = _RESULT_OPTIONS if figures else _FIGURE_OPTIONS
    given = [
        option.opts[0]
        for option in context.command.params
        if option.name in others
        and context.get_parameter_source(option.name) is not ParameterSource.DEFAULT
    ]
    if given:
        kind = "not for --figures" if figures else "for --figures alone"
        raise click.UsageError(f"{given[0]} is {kind}: leave it out")


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--format", "form", type=click.Choice(_FORMATS), default="markdown", help="Of the tables."
)
@click.option("--bold", is_flag=True, help="Best number of each base model and column in bold.")
@click.option("--reported", is_flag=True, help="Papers' numbers beside these, labelled.")
@click.option("--paired", "compare", is_flag=True, help="Compare evaluations task by task.")
@_file("--curve", "Draw success over training steps: a .png or .svg file.")
@_file("--html", "Write one page with the figures and every episode.")
@_file("--output", "Write the tables into a file.")
@_file("--sweep", "Draw success over the values of a swept setting: a .png or .svg file.")
@click.option(
    "--checkpoint",
    default="last",
    metavar="last|best|last-N",
    help="Which evaluations of a training run count; last-N is the mean of the last N.",
)
@click.option("--figures", metavar="A,B", help="Logged figures of training runs, as a table.")
@click.option("--from-step", default=0, help="With --figures: leave out earlier steps.")
@click.option(
    "--smooth", default=1, type=click.IntRange(min=1), help="With --figures: steps of an average."
)
@imports.needed("eval")
def report(
    paths: tuple[Path, ...],
    form: str,
    bold: bool,
    reported: bool,
    compare: bool,
    curve: Path | None,
    html: Path | None,
    output: Path | None,
    sweep: Path | None,
    checkpoint: str,
    figures: str | None,
    from_step: int,
    smooth: int,
) -> None:
    """Tables of the results in PATHS: folders of evaluations and of training runs.

    Training runs that differ only in their seed are one row, mean ± standard deviation. So are
    evaluations of one model, or of such runs' checkpoints, with different seeds. For a single
    training run, its table and pictures are drawn again. Runs of a sweep have a table of success by
    value besides, which --sweep draws. With --figures the table is of what
    training runs have logged, --curve draws it, and --format csv has the values of all steps.
    With --checkpoint best, the evaluation that is greatest on the validation split counts.
    """
    _check_options(figures is not None)
    if figures is not None:
        from harness.reporting.report_output import put_out_figures

        put_out_figures(
            paths, figures.split(","), form, from_step, smooth=smooth, curve=curve, output=output
        )
        return
    from harness.reporting.report_output import put_out
    from harness.reporting.results.training_runs import Choice

    put_out(
        paths,
        form,
        Choice.parse(checkpoint),
        bold=bold,
        reported=reported,
        compare=compare,
        curve=curve,
        html=html,
        output=output,
        sweep=sweep,
    )
