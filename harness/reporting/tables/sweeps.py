"""Several training runs: success by the values of swept settings, and every total over seeds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness.evaluation.statistics import mean_and_std, student_interval
from harness.reporting import figure
from harness.reporting.figure import Line, Panel
from harness.reporting.results.agent_names import agent_name
from harness.reporting.results.seed_groups import SeedGroup
from harness.reporting.table import Table, escaped
from harness.reporting.tables.columns import Column, inner
from harness.reporting.tables.formats import NONE, cell_text
from harness.reporting.tables.rows import Cell, ResultTable, cell_of
from harness.types.errors import ResultError

_SUCCESS: Final = Column("Success", ("success",))


@dataclass(frozen=True, slots=True)
class Point:
    """Runs with one value of each swept setting, which differ in nothing but seeds."""

    method: str
    tasks: str
    # values of the swept settings by their dotted keys; None if a run has none
    values: Mapping[str, Any]
    success: Cell
    seeds: int


def points(tables: Sequence[ResultTable]) -> list[Point]:
    """Return the results of swept runs, sorted by tasks, method and values."""
    made = [
        point
        for one in tables
        if not one.detailed
        for row in one.rows
        for place, group in row.groups.items()
        for point in _points(group, one.blocks[place].title)
    ]
    return sorted(made, key=lambda p: (p.tasks, p.method, [order(v) for v in p.values.values()]))


def _points(group: SeedGroup, tasks: str) -> Iterator[Point]:
    result = group.first.result
    config = result["config"] if "training" in result else {}
    swept = config.get("swept") or []
    validation = config.get("eval", {}).get("split") == result["environment"]["split"]
    mean = group.mean(_SUCCESS) if swept and validation else None
    if mean:
        values = {str(key): inner(config, str(key).split(".")) for key in swept}
        seeds = len(group.training_seeds)
        yield Point(agent_name(result).text, tasks, values, cell_of(mean, _SUCCESS), seeds)


def is_number(value: Any) -> bool:
    """Return whether a swept value is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def order(value: Any) -> tuple[float, str]:
    """Return what swept values are sorted by: numbers first, by size."""
    return (float(value), "") if is_number(value) else (float("inf"), shown(value))


def shown(value: Any) -> str:
    """Return a swept value as text."""
    return value if isinstance(value, str) else json.dumps(value)


def markdown(found: Sequence[Point]) -> str:
    """Return a table for each set of swept settings; "" if nothing was swept."""
    by_keys: dict[tuple[str, ...], list[Point]] = {}
    for point in found:
        by_keys.setdefault(tuple(point.values), []).append(point)
    written = []
    for keys, points_here in by_keys.items():
        headings = ["Method", "Tasks", *map(escaped, keys), "Success", "Seeds"]
        rows = []
        for p in points_here:
            texts = map(escaped, (p.method, p.tasks, *map(shown, p.values.values())))
            rows.append([*texts, cell_text(p.success), str(p.seeds)])
        written.append(f"**By value**\n\n{Table(headings, rows).markdown()}\n")
    return "\n".join(written)


def draw(path: Path, found: Sequence[Point]) -> None:
    """Draw success in percent over the first swept setting with numbers, else over the first.

    Methods, tasks and values of further settings are lines. Bars are one deviation over training
    seeds, or the 95 % interval of one seed. Raises `ResultError` if no run was swept, runs have
    other swept settings, or a line has a value twice.
    """
    figure.check_kind(path)
    keys = list(dict.fromkeys(tuple(point.values) for point in found))
    if len(keys) != 1:
        given = "; ".join(", ".join(names) for names in keys) or "none"
        raise ResultError(
            "--sweep draws training runs of harness train --sweep that vary the same settings, got "
            f"runs that vary {given:.150}"
        )
    numbers = (k for k in keys[0] if all(is_number(p.values[k]) for p in found))
    key = next(numbers, keys[0][0])
    lines: dict[str, dict[Any, Point]] = {}
    for point in found:
        further = [f"{k}={shown(v)}" for k, v in point.values.items() if k != key]
        tasks = [point.tasks] if len({p.tasks for p in found}) > 1 else []
        label, value = ", ".join([point.method, *tasks, *further]), point.values[key]
        line = lines.setdefault(label, {})
        place = float(value) if is_number(value) else shown(value)
        if place in line:
            raise ResultError(
                f"--sweep: {key}={shown(value):.40} has two results in one line, which differ in "
                "other settings or in their last step: give the runs of one sweep, all finished"
            )
        line[place] = point
    title = "; ".join(dict.fromkeys(point.tasks for point in found))
    values = sorted({value for line in lines.values() for value in line}, key=order)
    numeric = all(is_number(p.values[key]) for p in found)
    places = {value: value if numeric else place for place, value in enumerate(values)}
    ticks = tuple(places.values()), tuple(f"{v:g}" if numeric else str(v) for v in places)
    drawn = tuple(_line(label, line, places) for label, line in lines.items())
    panel = Panel(title, drawn, labels=(key, "success (%)"), ticks=ticks)
    figure.draw(path, [panel], size=(6, 4))


def _line(label: str, line: Mapping[Any, Point], places: Mapping[Any, Any]) -> Line:
    """Return a line over swept values, with bars of one deviation or else of the interval."""
    cells = {place: line[value].success for value, place in places.items() if value in line}
    ends = [
        cell.interval or (cell.mean, cell.mean)
        if cell.std is None
        else (cell.mean - cell.std, cell.mean + cell.std)
        for cell in cells.values()
    ]
    means = {place: cell.mean for place, cell in cells.items()}
    return Line.through(label, means, ends, marker="o", points=True)


_HEADINGS: Final = ("Method", "Tasks", "Figure", "Mean", "Std", "95 % interval", "By seed")
_LEGEND: Final = "- 95 % intervals by Student's t over the training seeds' means\n"


def over_seeds(tables: Sequence[ResultTable], fewest: int = 2) -> str:
    """Return a row for each total of runs with `fewest` training seeds or more; "" for none."""
    rows = [row for one in tables if not one.detailed for row in _rows(one, fewest)]
    return (
        f"**Over training seeds**\n\n{Table(_HEADINGS, rows).markdown()}\n\n{_LEGEND}"
        if rows
        else ""
    )


def _rows(one: ResultTable, fewest: int) -> Iterator[list[str]]:
    for row in one.rows:
        for place, group in row.groups.items():
            block = one.blocks[place]
            for column in block.columns:
                means = group.by_training_seed(column) if column.is_total else {}
                if len(means) >= fewest:
                    numbers = _numbers(column, means)
                    yield [escaped(row.agent.text), escaped(block.title), column.heading, *numbers]


def _numbers(column: Column, means: dict[int, float]) -> list[str]:
    def text(number: float | None) -> str:
        return NONE if number is None else cell_text(Cell(number, decimals=column.decimals))

    values = [mean * column.scale for mean in means.values()]
    mean, std = mean_and_std(values)
    interval = student_interval(values)
    per_seed = ", ".join(f"{seed}: {text(x)}" for seed, x in zip(means, values, strict=True))
    ends = NONE if interval is None else " to ".join(map(text, interval))
    return [text(mean), text(std), ends, per_seed]
