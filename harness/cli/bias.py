"""Command line: `harness credit bias`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentgyms.cli.printing import echo
from agentgyms.core import imports
from agentgyms.core.errors import not_written
from harness.cli.evaluate import whole_numbers
from harness.cli.output import write

if TYPE_CHECKING:
    from harness.audit.bias import Cell, Estimate, World


@click.command("bias")
@click.argument("worlds", nargs=-1, metavar="[WORLD]...")
@click.option("--methods", "names", default="", metavar="A,B", help="Only these, in this order.")
@click.option(
    "--credit", "settings", multiple=True, metavar="METHOD.KEY=VALUE", help="A hyperparameter."
)
@click.option("--preset", default="paper", help="paper or verl_agent.")
@click.option("--lengths", default="", metavar="N,N", help="Most turns of an episode.")
@click.option("--group-sizes", "sizes", default="8", metavar="N,N", help="Episodes of a group (8).")
@click.option("--groups", default=8, help="Groups of a step (8).")
@click.option("--steps", default=1000, help="Steps to draw (1000); more see smaller biases.")
@click.option(
    "--objective",
    type=click.Choice(("success", "environment")),
    default="success",
    help="The return: success, or rewards of turns and success.",
)
@click.option("--continuations", default=8, help="Of each state, for oracle and vineppo (8).")
@click.option("--seed", default=0, help="Of policies and episodes.")
@click.option("--csv", "table", type=click.Path(path_type=Path), help="Write figures; - prints.")
@click.option("--json", "values", type=click.Path(path_type=Path), help="The same as JSON.")
@click.option(
    "--figure",
    "picture",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Draw what is off over the group size: a .png or .svg file.",
)
@imports.needed("eval")
def bias(
    worlds: tuple[str, ...],
    names: str,
    settings: tuple[str, ...],
    preset: str,
    lengths: str,
    sizes: str,
    table: Path | None,
    values: Path | None,
    picture: Path | None,
    **options: Any,
) -> None:
    """Measure the bias and the noise of methods' gradients, where the exact gradient is known.

    WORLD is chain-stop (the default), chain-fixed, corridor or frozen-lake. Equal commands print
    equal digits.
    """
    from harness.audit import bias as laboratory
    from harness.reporting import figure
    from harness.reporting.credit_view import bias_text, compare

    if picture is not None:
        figure.check_kind(picture)
    chosen = [name.strip() for name in names.split(",") if name.strip()]
    estimators = bias_text.estimators(compare.choose(chosen, settings, preset))
    asked = whole_numbers(lengths, "--lengths", "4,8") if lengths else [0]
    places = [(world, length) for world in worlds or laboratory.NAMES[:1] for length in asked]
    made = [laboratory.make(world, length, options["seed"]) for world, length in places]
    group_sizes = whole_numbers(sizes, "--group-sizes", "2,8,32")
    cells, lacking = _measured(made, group_sizes, estimators, options)
    if table is not None:
        write(table, bias_text.to_csv(cells))
    if values is not None:
        write(values, json.dumps(bias_text.records(cells), indent=1) + "\n")
    if picture is not None:
        _draw(picture, cells)
    if not any(str(path) == "-" for path in (table, values)):
        echo(bias_text.to_text(cells, lacking))


def _measured(
    worlds: Sequence[World],
    sizes: Sequence[int],
    estimators: Mapping[str, Estimate],
    options: Mapping[str, Any],
) -> tuple[list[Cell], dict[str, tuple[str, ...]]]:
    from agentgyms.data.progress_bar import ProgressBar
    from harness.audit.bias import measure

    cells: list[Cell] = []
    lacking: dict[str, tuple[str, ...]] = {}
    with ProgressBar(total=len(worlds) * len(sizes), desc="bias", unit="table") as bar:
        for world in worlds:
            for size in sizes:
                found, missing = measure(world, estimators, size=size, **options)
                cells += found
                lacking |= missing
                bar.update()
    return cells, lacking


def _draw(path: Path, cells: Sequence[Cell]) -> None:
    from harness.reporting.credit_view import bias_text

    try:
        bias_text.draw(path, cells)
    except OSError as e:
        raise not_written(path, e) from e
    echo(f"wrote {path}", err=True)
