"""Success on the validation split by the values of swept settings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from harness.reporting.results.agent_names import agent_name
from harness.reporting.results.seed_groups import SeedGroup
from harness.reporting.table import Table, escaped
from harness.reporting.tables.columns import Column
from harness.reporting.tables.formats import cell_text
from harness.reporting.tables.rows import Cell, ResultTable, cell_of

TITLE: Final = "By value"
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
    found = (
        (group, one.blocks[place].title)
        for one in tables
        if not one.detailed
        for row in one.rows
        for place, group in row.groups.items()
    )
    made = [point for group, tasks in found for point in _points(group, tasks)]
    return sorted(made, key=lambda p: (p.tasks, p.method, [order(v) for v in p.values.values()]))


def _points(group: SeedGroup, tasks: str) -> Iterator[Point]:
    result = group.first.result
    config = result["config"] if "training" in result else {}
    swept = config.get("swept") or []
    validation = config.get("eval", {}).get("split") == result["environment"]["split"]
    mean = group.mean(_SUCCESS) if swept and validation else None
    if mean:
        values = {str(key): _value(config, str(key)) for key in swept}
        seeds = len(group.training_seeds)
        yield Point(agent_name(result).text, tasks, values, cell_of(mean, _SUCCESS), seeds)


def _value(config: Mapping[str, Any], key: str) -> Any:
    found: Any = config
    for part in key.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


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
    return "\n".join(_table(keys, rows) for keys, rows in by_keys.items())


def _table(keys: Sequence[str], rows: Sequence[Point]) -> str:
    headings = ["Method", "Tasks", *map(escaped, keys), "Success", "Seeds"]
    cells = [
        [
            *map(escaped, (p.method, p.tasks, *map(shown, p.values.values()))),
            cell_text(p.success),
            str(p.seeds),
        ]
        for p in rows
    ]
    return f"**{TITLE}**\n\n{Table(headings, cells).markdown()}\n"
