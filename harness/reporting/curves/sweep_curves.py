"""Draws success over the values of a swept setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.reporting import figure
from harness.reporting.figure import Line, Panel
from harness.reporting.tables.sweeps import Point, is_number, order, shown
from harness.types.errors import ResultError


def draw(path: Path, found: Sequence[Point]) -> None:
    """Draw success in percent over the first swept setting with numbers, else over the first.

    Methods, tasks and values of further settings are lines. Bars are one standard deviation over
    training seeds, or the 95 % interval of one seed. Raises `ResultError` if no run was swept, runs
    have other swept settings, or a line has a value twice.
    """
    figure.check_kind(path)
    keys = list(dict.fromkeys(tuple(point.values) for point in found))
    if len(keys) != 1:
        given = "; ".join(", ".join(names) for names in keys) or "none"
        raise ResultError(
            "--sweep draws training runs of harness train --sweep that vary the same settings, got "
            f"runs that vary {given:.150}"
        )
    key = _on_the_axis(keys[0], found)
    lines: dict[str, dict[Any, Point]] = {}
    for point in found:
        line, value = lines.setdefault(_label(point, key, found), {}), point.values[key]
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


def _on_the_axis(keys: Sequence[str], found: Sequence[Point]) -> str:
    numeric = (key for key in keys if all(is_number(p.values[key]) for p in found))
    return next(numeric, keys[0])


def _label(point: Point, key: str, found: Sequence[Point]) -> str:
    """Return the name of a point's line: what differs between lines."""
    further = [f"{k}={shown(v)}" for k, v in point.values.items() if k != key]
    tasks = [point.tasks] if len({p.tasks for p in found}) > 1 else []
    return ", ".join([point.method, *tasks, *further])


def _line(label: str, line: Mapping[Any, Point], places: Mapping[Any, Any]) -> Line:
    """Return a line over swept values, with bars of one deviation or else of the interval."""
    steps = [value for value in places if value in line]
    cells = [line[value].success for value in steps]
    ends = [
        cell.interval or (cell.mean, cell.mean)
        if cell.std is None
        else (cell.mean - cell.std, cell.mean + cell.std)
        for cell in cells
    ]
    return Line(
        label,
        tuple(places[value] for value in steps),
        tuple(cell.mean for cell in cells),
        tuple(low for low, _ in ends),
        tuple(high for _, high in ends),
        marker="o",
        points=True,
    )
