"""Command line: `harness credit` and `harness methods`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from harness.credit_view.comparing import Credit
    from harness.credit_view.recordings import Recorded

_MOST_ROWS = 400
"""Turns that are printed unless a group is asked for."""


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="FILE_OR_RUN...")
@click.option("--example", is_flag=True, help="Take the bundled rollouts instead of files.")
@click.option("--methods", "names", default="", metavar="A,B", help="Only these, in this order.")
@click.option(
    "--set", "overrides", multiple=True, metavar="METHOD.KEY=VALUE", help="A hyperparameter."
)
@click.option("--preset", default="paper", help="paper (default) or verl_agent.")
@click.option("--reward", help="environment or success; a run's own, else environment.")
@click.option("--reward-scale", type=float, help="Factor on rewards; a run's own, else 10.")
@click.option("--group", type=int, help="Print the turns of this group.")
@click.option("--html", "page", type=click.Path(path_type=Path), help="Write the page here.")
@click.option("--csv", "table", type=click.Path(path_type=Path), help="Write all turns; - prints.")
@click.option("--json", "values", type=click.Path(path_type=Path), help="The same as JSON.")
def credit(
    paths: tuple[Path, ...],
    example: bool,
    names: str,
    overrides: tuple[str, ...],
    preset: str,
    reward: str | None,
    reward_scale: float | None,
    group: int | None,
    page: Path | None,
    table: Path | None,
    values: Path | None,
) -> None:
    """Compute what every method makes of recorded rollouts. No model is needed."""
    if bool(paths) == example:
        raise click.UsageError("give files of rollouts or runs' folders, or --example")
    from harness.credit_view import comparing, recordings, text

    chosen = [name.strip() for name in names.split(",") if name.strip()]
    choices = comparing.choose(chosen, overrides, preset)
    if example:
        recorded = recordings.of_example(reward=reward, reward_scale=reward_scale)
    else:
        recorded = recordings.load(paths, reward=reward, reward_scale=reward_scale)
    results = comparing.compare(recorded.turns, choices)
    if table:
        _write(table, text.to_csv(recorded, results))
    if values:
        _write(values, json.dumps(text.to_json(recorded, results), indent=1) + "\n")
    if page:
        from harness.credit_view.page import render

        _write(page, render(recorded, results))
    if not any(str(path) == "-" for path in (table, values, page)):
        _print(recorded, results, group)


def _print(recorded: Recorded, results: list[Credit], group: int | None) -> None:
    from harness.credit_view import text

    known = sorted({rollout.group for rollout in recorded.rollouts})
    if group is not None and group not in known:
        raise click.UsageError(f"there is no group {group}: expected {known[0]} to {known[-1]}")
    shown = known if len(recorded.turns) <= _MOST_ROWS else known[:1]
    shown = shown if group is None else [group]
    width = shutil.get_terminal_size((120, 24)).columns
    click.echo(text.summary(recorded, results))
    for number in shown:
        click.echo(f"\n{text.table(recorded, results, number, width)}")
    if group is None and len(shown) < len(known):
        click.echo(f"\ngroup {shown[0]} of {len(known)}: --group shows another, --csv all of them")


def _write(path: Path, text: str) -> None:
    if str(path) == "-":
        click.echo(text, nl=False)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", errors="replace")
    click.echo(f"wrote {path}", err=True)


@click.command("methods")
def list_methods() -> None:
    """List the methods: estimator, loss, columns needed, paper."""
    from harness.credit_view.comparing import columns_of, written
    from harness.methods import METHODS

    lines = [("method", "credit", "needs", "loss", "paper")]
    for row in METHODS.values():
        own = " ".join([row.estimator, *(f"{k}={written(v)}" for k, v in row.credit.items())])
        loss = " ".join([row.loss, *(f"{k}={written(v)}" for k, v in row.loss_settings.items())])
        columns = " ".join(columns_of(row.estimator, row.credit)) or "-"
        lines.append((row.name, own, columns, loss, row.reference))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = (f"{cell:{width}}" for cell, width in zip(line, widths, strict=True))
        click.echo("  ".join(cells).rstrip())
