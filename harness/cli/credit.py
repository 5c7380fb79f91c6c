"""Command line: `harness credit` and `harness methods`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentgyms.cli.printing import echo, echo_styled
from agentgyms.core import imports
from harness.cli.audit import audit
from harness.cli.bias import bias
from harness.cli.output import write

if TYPE_CHECKING:
    from harness.reporting.credit_view.compare import Credit
    from harness.reporting.credit_view.recordings import RecordedRollouts


class _WithSubcommands(click.Command):
    """A command with files as arguments whose first word may be `audit` or `bias`."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        for one in (audit, bias):
            if args[:1] == [one.name]:
                return one.make_context(f"{info_name} {one.name}", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command(cls=_WithSubcommands)
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="FILE_OR_RUN...")
@click.option("--example", is_flag=True, help="Take the bundled rollouts instead of files.")
@click.option("--methods", "names", default="", metavar="A,B", help="Only these, in this order.")
@click.option(
    "--set", "overrides", multiple=True, metavar="METHOD.KEY=VALUE", help="A hyperparameter."
)
@click.option("--preset", default="paper", help="paper (default) or verl_agent.")
@click.option("--reward", help="environment or success; a run's own, else environment.")
@click.option("--reward-scale", type=float, help="Factor on rewards; a run's own, else 10.")
@click.option("--group", type=int, help="Print all rollouts of this group.")
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
    """Compute every method's advantages on recorded rollouts. No model is needed.

    `harness credit audit` compares them with measured ones, `harness credit bias` their gradients
    with exact ones; see `--help` of both.
    """
    if bool(paths) == example:
        raise click.UsageError("give files of rollouts or runs' folders, or --example")
    from harness.reporting.credit_view import compare, recordings, text

    chosen = [name.strip() for name in names.split(",") if name.strip()]
    choices = compare.choose(chosen, overrides, preset)
    if example:
        recorded = recordings.load_example(reward=reward, reward_scale=reward_scale)
    else:
        recorded = recordings.load(paths, reward=reward, reward_scale=reward_scale)
    results = compare.compare(recorded.turns, choices)
    if table:
        write(table, text.to_csv(recorded, results))
    if values:
        write(values, json.dumps(text.to_json(recorded, results), indent=1) + "\n")
    if page:
        with imports.needed("eval"):
            from harness.reporting.credit_view.page import render

        write(page, render(recorded, results))
    if not any(str(path) == "-" for path in (table, values, page)):
        _print(recorded, results, group)


def _print(recorded: RecordedRollouts, results: list[Credit], group: int | None) -> None:
    from harness.reporting.credit_view import text

    known = sorted({rollout.group for rollout in recorded.rollouts})
    if group is not None and group not in known:
        raise click.UsageError(f"there is no group {group}: expected {known[0]} to {known[-1]}")
    first = known[0] if group is None else group
    shown = [i for i, one in enumerate(recorded.rollouts) if one.group == first]
    shown = shown[:1] if group is None else shown
    width = shutil.get_terminal_size((120, 24)).columns
    echo(text.summary(recorded, results))
    echo_styled(f"\n{text.table(recorded, results, shown, width)}")
    count = len(recorded.rollouts)
    if group is None and count > 1:
        echo(f"\n1 of {count} rollouts: --group {first} prints its group, --html all of them")


@click.command("methods")
def list_methods() -> None:
    """List the methods: estimator, loss, columns needed, paper."""
    from harness.config.methods import rows
    from harness.reporting.credit_view.compare import columns_of

    lines = [("method", "credit", "needs", "loss", "paper")]
    for row in rows().values():
        own = _with_settings(row.estimator, row.credit)
        loss = _with_settings(row.loss, row.loss_settings)
        columns = " ".join(columns_of(row.estimator, row.credit)) or "-"
        lines.append((row.name, own, columns, loss, row.reference))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = (f"{cell:{width}}" for cell, width in zip(line, widths, strict=True))
        echo("  ".join(cells).rstrip())


def _with_settings(name: str, settings: Mapping[str, Any]) -> str:
    from harness.reporting.credit_view.compare import setting_text

    return " ".join([name, *(f"{key}={setting_text(value)}" for key, value in settings.items())])
