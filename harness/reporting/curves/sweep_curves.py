"""Draws success over the values of a swept setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.reporting.curves import success_curves
from harness.reporting.tables.sweeps import Point, is_number, order, shown
from harness.types.errors import ResultError


def draw(path: Path, found: Sequence[Point]) -> None:
    """Draw success in percent over the first swept setting with numbers, else over the first one.

    Methods, tasks and values of further settings are lines. Error bars are one standard deviation
    over training seeds, or the 95 % interval of one seed.

    Args:
        path: A `.png` or `.svg` file; an existing one is overwritten.
        found: See `harness.reporting.tables.sweeps.points`.

    Raises:
        ResultError: No run was swept, runs have other swept settings, or a line has a value twice.
        ConfigError: The file's name has another ending.
    """
    success_curves.check_kind(path)
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
    _draw(path, key, lines, title, numeric=all(is_number(p.values[key]) for p in found))


def _on_the_axis(keys: Sequence[str], found: Sequence[Point]) -> str:
    numeric = (key for key in keys if all(is_number(p.values[key]) for p in found))
    return next(numeric, keys[0])


def _label(point: Point, key: str, found: Sequence[Point]) -> str:
    """Return the name of a point's line: what differs between lines."""
    further = [f"{k}={shown(v)}" for k, v in point.values.items() if k != key]
    tasks = [point.tasks] if len({p.tasks for p in found}) > 1 else []
    return ", ".join([point.method, *tasks, *further])


def _draw(
    path: Path, key: str, lines: Mapping[str, Mapping[Any, Point]], title: str, *, numeric: bool
) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    values = sorted({value for line in lines.values() for value in line}, key=order)
    places = {value: value if numeric else place for place, value in enumerate(values)}
    for label, line in lines.items():
        ordered = [value for value in values if value in line]
        cells = [line[value].success for value in ordered]
        axes.errorbar(
            [places[value] for value in ordered],
            [cell.mean for cell in cells],
            yerr=[[_bar(cell, side) for cell in cells] for side in (0, 1)],
            marker="o",
            capsize=3,
            label=label,
        )
    axes.set_xticks(list(places.values()), [f"{v:g}" if numeric else str(v) for v in places])
    axes.set(xlabel=key, ylabel="success (%)")
    axes.set_title(title, loc="left", fontsize=9)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
    success_curves.save(figure, path)


def _bar(cell: Any, side: int) -> float:
    """Return the length of an error bar, downwards for side 0 and upwards for 1."""
    if cell.std is not None:
        return float(cell.std)
    return float(abs(cell.interval[side] - cell.mean)) if cell.interval else 0.0
