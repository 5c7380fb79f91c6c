"""Draws success over training steps, for one run or for several."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from harness.evaluation.statistics import mean_and_std
from harness.reporting.results.agent_names import method_name
from harness.reporting.results.training_runs import TrainingRun
from harness.runs import fsync, metrics
from harness.types.errors import ConfigError

_COLOURS: Final = ("#2563eb", "#d97706", "#059669", "#9333ea", "#dc2626", "#0891b2")
_TRAINING: Final = "#9ca3af"
_MOST_TITLE: Final = 70
"""Characters of a line that fit above the picture."""
_KINDS: Final = (".png", ".svg")


@dataclass(frozen=True, slots=True)
class Curve:
    """A line with a band, or points with bars, in shares of 1.

    Attributes:
        label: Its name in the legend.
        steps: Training steps.
        mean: At each step.
        low: Lower edge of the band.
        high: Upper edge.
        dashed: Whether the line is dashed, which separates two lines of one colour.
        points: Whether there are too few steps for a line: points with bars in place of the band.
    """

    label: str
    steps: tuple[int, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    dashed: bool = False
    points: bool = False


def draw(path: str | Path, groups: Sequence[Sequence[TrainingRun]]) -> None:
    """Draw learning curves.

    For one run: success of each split with its 95 % interval, the mean score if it differs from
    success, and success on the training tasks. For several runs: one line per group of runs, of
    their validation splits.

    Args:
        path: The picture's file, which ends in `.png` or `.svg`; an existing file is overwritten.
        groups: Groups of runs that differ only in their seeds; a group's line is the mean over its
            runs with a band of one standard deviation.

    Raises:
        ConfigError: The file's name has another ending.
    """
    check_kind(path)
    single = len(groups) == 1 and len(groups[0]) == 1
    drawn = of_run(groups[0][0]) if single else [[of_group(group)] for group in groups]
    training = _training(groups[0][0]) if single else None
    _save(Path(path), drawn, training, _title(groups))


def check_kind(path: str | Path) -> None:
    """Check the ending of a picture's file.

    Raises:
        ConfigError: It is neither `.png` nor `.svg`.
    """
    if Path(path).suffix not in _KINDS:
        raise ConfigError(f"a curve's file must end in {' or '.join(_KINDS)}, got {path}")


def of_run(run: TrainingRun) -> list[list[Curve]]:
    """Return the curves of a run, grouped by split; a split that is evaluated less has points."""
    return [_of_split(run, split) for split in run.splits]


def _of_split(run: TrainingRun, split: str) -> list[Curve]:
    evaluations = run.of_split(split)
    curves = [_curve(f"{split} (95 % interval)", evaluations, "success", "interval")]
    scored = [e for e in evaluations if "score" in e]
    if any(abs(e["score"] - e["success"]) > 1e-9 for e in scored):
        score = _curve(f"{split}: score", scored, "score", None)
        curves.append(score)
    few = len(evaluations) < len(run.of_split(run.splits[0]))
    return [replace(curve, points=few) for curve in curves]


def _curve(
    label: str, evaluations: Sequence[Mapping[str, Any]], name: str, interval: str | None
) -> Curve:
    """Return the curve of a figure; without an interval it is dashed and has no band."""
    mean = tuple(float(e[name]) for e in evaluations)
    ends = [e[interval] if interval else (e[name], e[name]) for e in evaluations]
    return Curve(
        label,
        tuple(int(e["step"]) for e in evaluations),
        mean,
        tuple(float(low) for low, _ in ends),
        tuple(float(high) for _, high in ends),
        dashed=interval is None,
    )


def of_group(group: Sequence[TrainingRun]) -> Curve:
    """Return the mean success over runs on their validation split, at the steps that all runs have.

    The band is one standard deviation (ddof 1) to both sides; for a single run it is the 95 %
    interval.
    """
    split, label = group[0].splits[0], method_name(group[0].method)
    by_step = [{int(e["step"]): e for e in run.of_split(split)} for run in group]
    if len(group) == 1:
        label = f"{label}, {group[0].folder.resolve().name} (95 % interval)"
        return _curve(label, list(by_step[0].values()), "success", "interval")
    steps = sorted(set.intersection(*map(set, by_step)))
    figures = [mean_and_std([float(run[step]["success"]) for run in by_step]) for step in steps]
    means, stds = [mean or 0.0 for mean, _ in figures], [std or 0.0 for _, std in figures]
    return Curve(
        f"{label} ({len(group)} seeds, mean ± std)",
        tuple(steps),
        tuple(means),
        tuple(mean - std for mean, std in zip(means, stds, strict=True)),
        tuple(mean + std for mean, std in zip(means, stds, strict=True)),
    )


def _training(run: TrainingRun) -> tuple[list[int], list[float]]:
    records = [r for r in metrics.read(run.folder) if r.get("rollout/success") is not None]
    return [int(r["step"]) for r in records], [100 * float(r["rollout/success"]) for r in records]


def _title(groups: Sequence[Sequence[TrainingRun]]) -> str:
    played = dict.fromkeys(run.world for group in groups for run in group)
    methods = ", ".join(dict.fromkeys(method_name(run.method) for group in groups for run in group))
    return f"{methods} on {'; '.join(played)}"


def _save(
    path: Path,
    drawn: Sequence[Sequence[Curve]],
    training: tuple[list[int], list[float]] | None,
    title: str,
) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(7, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    if training:
        axes.plot(*training, color=_TRAINING, linewidth=0.8, label="training tasks")
    for number, curves in enumerate(drawn):
        for curve in curves:
            _plot(axes, curve, _COLOURS[number % len(_COLOURS)])
    axes.set(xlabel="training step", ylabel="success (%)", ylim=(0, 100))
    axes.set_title(textwrap.fill(title, _MOST_TITLE), loc="left", fontsize=11)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper left")
    save(figure, path)


def save(figure: Any, path: Path) -> None:
    """Write a figure of matplotlib into a `.png` or `.svg` file, equal ones into equal files."""
    import matplotlib

    metadata = {"Date": None} if path.suffix == ".svg" else None
    with (
        matplotlib.rc_context({"svg.hashsalt": "agentgyms"}),
        fsync.replacing(path) as drawn_file,
    ):
        figure.savefig(drawn_file, format=path.suffix[1:], dpi=150, metadata=metadata)


def _plot(axes: Any, curve: Curve, colour: str) -> None:
    mean = [100 * value for value in curve.mean]
    if curve.points:
        below = [100 * (m - low) for m, low in zip(curve.mean, curve.low, strict=True)]
        above = [100 * (high - m) for m, high in zip(curve.mean, curve.high, strict=True)]
        axes.errorbar(
            curve.steps,
            mean,
            yerr=None if curve.dashed else [below, above],
            fmt="x" if curve.dashed else "s",
            markersize=5,
            capsize=4,
            color=colour,
            label=curve.label,
        )
        return
    style = "--" if curve.dashed else "-"
    marker = None if curve.dashed else "o"
    axes.plot(
        curve.steps,
        mean,
        linestyle=style,
        marker=marker,
        markersize=4,
        color=colour,
        label=curve.label,
    )
    if not curve.dashed:
        low, high = [100 * v for v in curve.low], [100 * v for v in curve.high]
        axes.fill_between(curve.steps, low, high, color=colour, alpha=0.15, linewidth=0)
