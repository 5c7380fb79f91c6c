"""Logged figures of training runs: curves over steps, a panel each, and a table of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from harness.evaluation.statistics import mean_and_std
from harness.reporting import figure
from harness.reporting.figure import COLOURS, Line, Panel
from harness.reporting.results.training_runs import TrainingRun, group_name
from harness.reporting.table import Table, escaped
from harness.runs import metrics
from harness.types.arrays import Floats
from harness.types.errors import ResultError

_WINDOW: Final = 5
"""Values of a rolling deviation."""
_SHOWN: Final = 8
_HEADINGS: Final = (
    "figure", "run", "seeds", "steps", "mean", "median", "first", "last", "largest jump",
    f"rolling std ({_WINDOW})",
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """One figure of runs that differ in their seeds alone."""

    figure: str
    label: str  # the runs' name, without their seeds
    steps: tuple[int, ...]  # training steps at which all runs have it. Length S
    values: Floats  # [seeds, S]
    world: str  # see `TrainingRun.world`


def read(
    groups: Sequence[Sequence[TrainingRun]], figures: Sequence[str], from_step: int = 0
) -> list[Series]:
    """Return the figures of groups of runs from a step on, in the order of the figures.

    Runs of a group differ in their seeds alone. If a step has several lines, the first counts.
    Raises `ResultError` if no run has logged a figure.
    """
    logged = [[metrics.read(run.folder) for run in group] for group in groups]
    found = []
    for name in figures:
        named = [
            _series(name, group, records, from_step)
            for group, records in zip(groups, logged, strict=True)
        ]
        kept = [series for series in named if series.steps]
        if not kept:
            names = {n for group in logged for run in group for line in run for n in line}
            known = sorted(names - {"step"})
            near = [n for n in known if n.startswith(f"{name.partition('/')[0]}/")] or known
            shown = ", ".join(near[:_SHOWN]) + (", ..." if len(near) > _SHOWN else "")
            raise ResultError(
                f"no run has logged {name!r} from step {from_step} on: expected such as {shown}"
            )
        found += kept
    return found


def _series(
    figure: str, group: Sequence[TrainingRun], records: Sequence[Any], from_step: int
) -> Series:
    by_step: list[dict[int, float]] = []
    for lines in records:
        values: dict[int, float] = {}
        for line in lines:
            if line.get(figure) is not None and line["step"] >= from_step:
                values.setdefault(int(line["step"]), float(line[figure]))
        by_step.append(values)
    steps = tuple(sorted(set.intersection(*map(set, by_step))))
    table = np.array([[run[step] for step in steps] for run in by_step], dtype=np.float64)
    return Series(figure, group_name(group), steps, table, group[0].world)


def to_markdown(found: Sequence[Series]) -> str:
    """Return a table: a row for each figure and group, means ± deviations over its seeds.

    A jump is the largest change from one logged value to the next, a rolling deviation the mean of
    the sample deviations of 5 values in a row: ECPO, section 6.1, names both and gives no window.
    """
    worlds = dict.fromkeys(f"- {escaped(series.world)}\n" for series in found)
    return f"{Table(_HEADINGS, map(_row, found)).markdown()}\n\n{''.join(worlds)}"


def _row(series: Series) -> list[str]:
    steps = series.steps
    reduced: list[Callable[[Any], float]] = [
        np.mean, np.median, lambda x: x[0], lambda x: x[-1],
        lambda x: np.abs(np.diff(x)).max() if len(x) > 1 else np.nan, _rolling_std,
    ]  # fmt: skip

    def shown(reduce: Callable[[Any], float]) -> str:
        mean, std = mean_and_std([float(reduce(run)) for run in series.values])
        if mean is None or not np.isfinite(mean):
            return "-"
        return f"{mean:.4g}" if std is None else f"{mean:.4g}±{std:.2g}"

    return [
        f"`{series.figure}`",
        escaped(series.label),
        str(len(series.values)),
        f"{steps[0]} to {steps[-1]}" if len(steps) > 1 else str(steps[0]),
        *map(shown, reduced),
    ]


def _rolling_std(x: Any) -> float:
    if len(x) < _WINDOW:
        return np.nan
    windows = np.lib.stride_tricks.sliding_window_view(x, _WINDOW)
    return float(windows.std(axis=1, ddof=1).mean())


def to_csv(found: Sequence[Series]) -> str:
    """Return every value: figure, run, step, mean, deviation ("" for one seed), seeds, world."""
    headings = ("figure", "run", "step", "mean", "std", "seeds", "world")
    rows = [
        (one.figure, one.label, step, *mean_and_std(values.tolist()), len(values), one.world)
        for one in found
        for step, values in zip(one.steps, one.values.T, strict=True)
    ]
    return Table(headings, rows).csv()


def smoothed(x: Any, steps: int) -> Any:
    """Return the mean of each value and those before it, `steps` in all or as many as there are."""
    sums = np.cumsum(x, axis=-1)
    sums[..., steps:] -= sums[..., :-steps].copy()
    return sums / np.minimum(np.arange(1, x.shape[-1] + 1), steps)


def draw(path: Path, found: Sequence[Series], smooth: int = 1) -> None:
    """Draw a panel per figure, a line per group, a deviation's band; average `smooth` steps."""
    labels = dict.fromkeys(series.label for series in found)
    colours = {label: COLOURS[i % len(COLOURS)] for i, label in enumerate(labels)}
    panels: dict[str, list[Line]] = {}
    for one in found:
        panels.setdefault(one.figure, []).append(_line(one, smooth, colours[one.label]))
    drawn = [Panel(n, tuple(lines), labels=("training step", "")) for n, lines in panels.items()]
    figure.draw(path, drawn, "; ".join(dict.fromkeys(series.world for series in found)))


def _line(series: Series, smooth: int, colour: str) -> Line:
    values = smoothed(series.values, smooth)
    mean, count = values.mean(axis=0), len(values)
    points = dict(zip(series.steps, mean, strict=True))
    if count == 1:
        return Line.through(series.label, points, colour=colour)
    std = values.std(axis=0, ddof=1)
    label = f"{series.label} ({count} seeds, mean ± std)"
    return Line.through(label, points, [*zip(mean - std, mean + std, strict=True)], colour=colour)
