"""Seconds of credit, and how near failed steps are to successes: SCPO's Table 5, Figures 2 and 5.

`python benchmarks/studies/credit_figures.py --help`. Rollouts are those of `harness credit`.
"""

from __future__ import annotations

from pathlib import Path

import click
import credit_timing
import scpo_neighbourhood

from agentgyms.core.errors import not_written
from harness.credit.similarity import SCORERS, pure_scorer
from harness.reporting.credit_view import compare, recordings
from harness.reporting.credit_view.compare import Credit
from harness.reporting.credit_view.recordings import RecordedRollouts


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="FILE_OR_RUN...")
@click.option("--example", is_flag=True, help="Take the bundled rollouts instead of files.")
@click.option("--methods", "names", default="", metavar="A,B", help="Only these, in this order.")
@click.option("--set", "overrides", multiple=True, metavar="METHOD.KEY=VALUE")
@click.option("--timing", is_flag=True, help="Print each method's seconds, SCPO's by stages.")
@click.option(
    "--neighbourhood",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Draw how near failed steps are to successes, by SCPO's credit: a .png or .svg file.",
)
@click.option(
    "--encoder", default="embedding", help="For --neighbourhood: embedding[:MODEL] or lexical."
)
def main(
    paths: tuple[Path, ...],
    example: bool,
    names: str,
    overrides: tuple[str, ...],
    timing: bool,
    neighbourhood: Path | None,
    encoder: str,
) -> None:
    """Print seconds of credit, or draw the neighbourhood of SCPO's credit."""
    if bool(paths) == example:
        raise click.UsageError("give files of rollouts or runs' folders, or --example")
    if not timing and not neighbourhood:
        raise click.UsageError("give --timing or --neighbourhood FILE")
    choices = compare.choose([name.strip() for name in names.split(",") if name], overrides)
    recorded = recordings.load_example() if example else recordings.load(paths)
    results = compare.compare(recorded.turns, choices)
    if neighbourhood:
        draw(neighbourhood, recorded, results, encoder)
    if timing:
        kept = [recordings.load([path]) for path in paths] or [recorded]
        click.echo(credit_timing.text([one.turns for one in kept], results))


def draw(path: Path, recorded: RecordedRollouts, results: list[Credit], encoder: str) -> None:
    """Draw the neighbourhood, and print its figures."""
    scpo = [result for result in results if result.choice.estimator == "scpo"]
    if not scpo:
        raise click.UsageError("--neighbourhood draws SCPO's credit: give --methods scpo")
    if encoder in SCORERS:
        similarity = pure_scorer(encoder)
    else:
        from harness.annotators import semantic

        similarity = semantic.open_scorer(encoder)
    found = scpo_neighbourhood.find(recorded.turns, scpo[0].settings, similarity)
    try:
        scpo_neighbourhood.draw(path, found)
    except OSError as e:
        raise not_written(path, e) from e
    click.echo(f"{scpo_neighbourhood.text(found)}\n\nwrote {path}")


if __name__ == "__main__":
    main()
