"""A table of training runs over their seeds: deviation, Student's interval, and every seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from harness.evaluation.breakdowns import ALL
from harness.evaluation.statistics import mean_and_std, student_interval
from harness.reporting.table import Table, escaped
from harness.reporting.tables.columns import Column
from harness.reporting.tables.formats import NONE, cell_text
from harness.reporting.tables.rows import Cell, ResultTable

TITLE: Final = "Over training seeds"
_HEADINGS: Final = ("Method", "Tasks", "Figure", "Mean", "Std", "95 % interval", "By seed")
_LEGEND: Final = "- 95 % intervals by Student's t over the training seeds' means\n"


def markdown(tables: Sequence[ResultTable]) -> str:
    """Return a row for each total of runs with several training seeds; "" if there are none."""
    rows = [row for one in tables if not one.detailed for row in _rows(one)]
    return f"**{TITLE}**\n\n{Table(_HEADINGS, rows).markdown()}\n\n{_LEGEND}" if rows else ""


def _rows(one: ResultTable) -> Iterator[list[str]]:
    for row in one.rows:
        for place, group in row.groups.items():
            block = one.blocks[place]
            for column in filter(is_total, block.columns):
                means = group.by_training_seed(column)
                if len(means) > 1:
                    numbers = _numbers(column, means)
                    yield [escaped(row.agent.text), escaped(block.title), column.heading, *numbers]


def _numbers(column: Column, means: dict[int, float]) -> list[str]:
    values = [mean * column.scale for mean in means.values()]
    mean, std = mean_and_std(values)
    interval = student_interval(values)
    low, high = (_text(end, column) for end in interval) if interval else (NONE, NONE)
    per_seed = ", ".join(
        f"{seed}: {_text(mean * column.scale, column)}" for seed, mean in means.items()
    )
    return [_text(mean, column), _text(std, column), f"{low} to {high}", per_seed]


def _text(number: float | None, column: Column) -> str:
    return NONE if number is None else cell_text(Cell(number, decimals=column.decimals))


def is_total(column: Column) -> bool:
    """Return whether a column is of all tasks, and not of a family or a question set."""
    return column.path[0] != "families" and ("Data set" not in column.path or ALL in column.path)
