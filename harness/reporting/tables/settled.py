"""How many training seeds would settle which method is better: a table for `harness report`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from harness.evaluation.seed_power import MOST_SEEDS, Apart, apart, readings
from harness.reporting.results.agent_names import model_key
from harness.reporting.table import Table, escaped
from harness.reporting.tables.columns import Column
from harness.reporting.tables.formats import NONE
from harness.reporting.tables.rows import ResultTable, Row

POINTS: Final = (2, 5, 10)
"""Differences in points of percent whose power is told."""

_HEADINGS: Final = (
    *("Methods", "Tasks", "Figure", "Seeds", "Difference", "95 % interval", "Reading"),
    *("Power at 2, 5, 10 points", "Seeds for 2, 5, 10 points", "Seeds for this difference"),
)
_LEGEND: Final = f"""\
- differences of the first row of a model and another one, at the seeds that both have; 95 % intervals and tests by Student's t
- settled: p < 0.05 after Holm's correction over the table's rows of a figure; leaning: p < 0.2; else not told apart
- power: the chance that as many seeds settle a true difference of so many points, if it spreads over seeds as here
- seeds: for 80 % power, by the spread here and (behind the dash) by the one that the true spread exceeds once in five times; "over" is over {MOST_SEEDS}
- without a spread between the seeds, p is that of the sign test, and power and seeds are unknown
"""  # noqa: E501 (a line of a list is a line)


def markdown(tables: Sequence[ResultTable]) -> str:
    """Return each method against the first of its model; "" without two common training seeds."""
    lines = [line for one in tables if not one.detailed for line in _lines(one)]
    if not lines:
        return ""
    title = "**How many seeds would settle this?**"
    return f"{title}\n\n{Table(_HEADINGS, lines).markdown()}\n\n{_LEGEND}"


def _lines(one: ResultTable) -> Iterator[list[str]]:
    for place, block in enumerate(one.blocks):
        for column in block.columns:
            if column.is_total and column.scale == 100:
                pairs = list(_pairs(one.rows, place, column))
                for (names, found), reading in zip(
                    pairs, readings([found for _, found in pairs]), strict=True
                ):
                    head = [escaped(names), escaped(block.title), column.heading]
                    yield [*head, *_cells(found, reading)]


def _pairs(rows: Sequence[Row], place: int, column: Column) -> Iterator[tuple[str, Apart]]:
    """Yield the names and the comparison of each row with the first of its model."""
    first: dict[str, tuple[Row, dict[int, float]]] = {}
    for row in rows:
        if place not in row.groups:
            continue
        values = row.groups[place].by_training_seed(column)
        reference, own = first.setdefault(model_key(row.agent.model), (row, values))
        common = sorted(own.keys() & values.keys())
        if reference is row or len(common) < 2:
            continue
        scaled = ([column.scale * by[seed] for seed in common] for by in (own, values))
        yield f"{reference.agent.text} - {row.agent.text}", apart(*scaled)


def _cells(found: Apart, reading: str) -> list[str]:
    low, high = found.interval or (None, None)
    interval = NONE if low is None or high is None else f"{low:+.1f} to {high:+.1f}"
    powers = [found.power(points) for points in POINTS]
    return [
        str(found.seeds),
        f"{found.mean:+.1f}",
        interval,
        reading,
        ", ".join(NONE if one is None else f"{one:.0%}" for one in powers),
        ", ".join(_seeds(found, points) for points in POINTS),
        _seeds(found, found.mean),
    ]


def _seeds(found: Apart, difference: float) -> str:
    needed = found.needed(difference)
    if needed is None:
        return NONE
    few, many = ("over" if one is None else str(one) for one in needed)
    return few if few == many else f"{few}-{many}"
