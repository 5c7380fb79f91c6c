"""Draws success over the steps of training, of one run or of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness import metrics
from harness.errors import ConfigError
from harness.evaluation.statistics import mean_and_std
from harness.reporting.naming import method_name
from harness.reporting.training_runs import TrainingRun

_COLOURS: Final = ("#2563eb", "#d97706", "#059669", "#9333ea", "#dc2626", "#0891b2")
_TRAINING: Final = "#9ca3af"
_KINDS: Final = (".png", ".svg")


@dataclass(frozen=True, slots=True)
class Curve:
    """A line with a band, in shares of 1.

    Attributes:
        label: What it is of.
        steps: Training steps.
        mean: At each step.
        low: Lower edge of the band.
        high: Upper edge.
        dashed: Whether the line is, so that two of one colour are told apart.
    """

    label: str
    steps: tuple[int, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    dashed: bool = False


def draw(path: str | Path, groups: Sequence[Sequence[TrainingRun]]) -> None:
    """Draw learning curves.

    One run has a line for each split with its 95 % interval, its mean score where that is another
    number, and success on the training tasks. Several have one line per group of runs, of their
    validation splits.

    Args:
        path: Of the picture, which ends in `.png` or `.svg`; a file that is there is overwritten.
        groups: Runs that differ in nothing but their seeds are a group, whose line is their mean
            with a band of one standard deviation.

    Raises:
        ConfigError: The name ends otherwise.
    """
    if Path(path).suffix not in _KINDS:
        raise ConfigError(f"a curve's file must end in {' or '.join(_KINDS)}, got {path}")
    single = len(groups) == 1 and len(groups[0]) == 1
    drawn = of_run(groups[0][0]) if single else [[of_group(group)] for group in groups]
    training = _training(groups[0][0]) if single else None
    _save(Path(path), drawn, training, _title(groups))


def of_run(run: TrainingRun) -> list[list[Curve]]:
    """Return the curves of a run, those of one split together."""
    return [_of_split(run, split) for split in run.splits]


def _of_split(run: TrainingRun, split: str) -> list[Curve]:
    every = [e for e in run.evaluations if e["split"] == split]
    curves = [_curve(f"{split} (95 % interval)", every, "success", "interval")]
    told = [e for e in every if "score" in e]
    if any(abs(e["score"] - e["success"]) > 1e-9 for e in told):
        score = _curve(f"{split}: score", told, "score", None)
        curves.append(score)
    return curves


def _curve(
    label: str, evaluations: Sequence[Mapping[str, Any]], name: str, interval: str | None
) -> Curve:
    """Return the line of a figure; without an interval it is dashed and has no band."""
    told = sorted(evaluations, key=lambda e: int(e["step"]))
    mean = tuple(float(e[name]) for e in told)
    ends = [e[interval] if interval else (e[name], e[name]) for e in told]
    return Curve(
        label,
        tuple(int(e["step"]) for e in told),
        mean,
        tuple(float(low) for low, _ in ends),
        tuple(float(high) for _, high in ends),
        dashed=interval is None,
    )


def of_group(group: Sequence[TrainingRun]) -> Curve:
    """Return the mean over runs of success on their validation split, at the steps all have.

    The band is one standard deviation (ddof 1) to both sides, of a single run its 95 % interval.
    """
    split, label = group[0].splits[0], method_name(group[0].method)
    by_step = [{int(e["step"]): e for e in run.evaluations if e["split"] == split} for run in group]
    if len(group) == 1:
        label = f"{label}, {group[0].folder.resolve().name} (95 % interval)"
        return _curve(label, list(by_step[0].values()), "success", "interval")
    steps = sorted(set.intersection(*(set(told) for told in by_step)))
    told = [mean_and_std([float(run[step]["success"]) for run in by_step]) for step in steps]
    means, stds = [mean or 0.0 for mean, _ in told], [std or 0.0 for _, std in told]
    return Curve(
        f"{label} ({len(group)} seeds, mean ± std)",
        tuple(steps),
        tuple(means),
        tuple(mean - std for mean, std in zip(means, stds, strict=True)),
        tuple(mean + std for mean, std in zip(means, stds, strict=True)),
    )


def _training(run: TrainingRun) -> tuple[list[int], list[float]]:
    told = [r for r in metrics.read(run.folder) if r.get("rollout/success") is not None]
    return [int(r["step"]) for r in told], [100 * float(r["rollout/success"]) for r in told]


def _title(groups: Sequence[Sequence[TrainingRun]]) -> str:
    environments = ", ".join(dict.fromkeys(run.env_id for group in groups for run in group))
    methods = ", ".join(dict.fromkeys(method_name(run.method) for group in groups for run in group))
    return f"{methods} on {environments}"


def _save(
    path: Path,
    drawn: Sequence[Sequence[Curve]],
    training: tuple[list[int], list[float]] | None,
    title: str,
) -> None:
    import matplotlib
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
    axes.set_title(title, loc="left", fontsize=11)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper left")
    # Equal runs give equal files: no time of drawing, and no names drawn by chance.
    told = {"Date": None} if path.suffix == ".svg" else None
    with matplotlib.rc_context({"svg.hashsalt": "agentgyms"}):
        figure.savefig(path, dpi=150, metadata=told)


def _plot(axes: Any, curve: Curve, colour: str) -> None:
    mean = [100 * value for value in curve.mean]
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
