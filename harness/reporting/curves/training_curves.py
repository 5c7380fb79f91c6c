"""Draws the metrics of a training run: one picture with nine panels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from harness.evaluation.breakdowns import in_order
from harness.reporting.results.agent_names import method_name
from harness.reporting.results.training_runs import TrainingRun
from harness.runs import fsync, metrics

Records = Sequence[Mapping[str, Any]]

_COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#4d4d4d")
"""The palette of Okabe and Ito, safe for colour-blind readers, without yellow."""
_STYLES: Final = ("-", "--", ":")
_SMOOTHED: Final = 60
"""Curves with more steps are drawn faintly, with their running mean above them."""
_BARS: Final = 60
_COLUMNS: Final = 3


@dataclass(frozen=True, slots=True)
class Line:
    """One figure over training steps.

    Attributes:
        label: Its name in the legend.
        steps: Training steps.
        values: The value at each step.
        dotted: Whether each value has a marker, as for evaluations, which are few.
    """

    label: str
    steps: tuple[int, ...]
    values: tuple[float, ...]
    dotted: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel of the picture.

    Attributes:
        title: Title above the panel.
        lines: Its lines.
        top: The upper end of the y-axis; None for the largest value.
        logarithmic: Whether the y-axis is logarithmic if all values are positive.
        stacked: Whether the lines are drawn as stacked bars.
    """

    title: str
    lines: tuple[Line, ...]
    top: float | None = None
    logarithmic: bool = False
    stacked: bool = False


def draw(path: Path, run: TrainingRun) -> None:
    """Draw the metrics logged so far; before the first training step nothing is drawn.

    Args:
        path: The picture's file, a `.png`; an existing file is overwritten.
        run: A run of any version; panels without figures are left out.
    """
    drawn = panels(run, metrics.read(run.folder))
    if drawn:
        _save(path, drawn, f"{method_name(run.method)} on {run.world}, seed {run.seed}")


def panels(run: TrainingRun, records: Records) -> list[Panel]:
    """Return the panels that have lines."""
    steps = [record for record in records if "update/loss" in record]
    if not steps:
        return []
    shares = {
        "update/clipped_share": "clipped tokens",
        "rollout/invalid_share": "invalid turns",
        "rollout/unfinished_share": "cut responses",
        "rollout/cut_thought_share": "cut thoughts",
        "credit/silent_groups": "silent groups",
    }
    distances = {
        "update/kl_old": "to the old policy",
        "update/kl_reference": "to the reference",
        "mismatch/kl_k3": "generator to policy",
    }
    found = [
        Panel("success and score (%)", tuple(_outcomes(run, steps)), 100),
        Panel(f"success by family, {run.splits[0]} (%)", tuple(_families(run)), 100),
        Panel("turns of an episode", (*_lines(steps, {"rollout/turns": "training"}), *_turns(run))),
        Panel("loss", _lines(steps, {"update/loss": "policy", **_other_losses(steps)})),
        Panel("gradient norm", _lines(steps, {"update/grad_norm": "before clipping"})),
        Panel("entropy (nats a token)", _lines(steps, {"update/entropy": "policy"})),
        Panel("KL divergence (nats a token)", _lines(steps, distances), logarithmic=True),
        Panel("shares (%)", _lines(steps, shares, 100)),
        Panel("seconds a step", tuple(_times(records)), stacked=True),
    ]
    return [panel for panel in found if panel.lines]


def _lines(records: Records, names: Mapping[str, str], scale: float = 1.0) -> tuple[Line, ...]:
    """Return a line for each figure that at least one record has."""
    lines = []
    for name, label in names.items():
        values = {int(r["step"]): scale * r[name] for r in records if r.get(name) is not None}
        if values:
            lines.append(Line(label, tuple(values), tuple(values.values())))
    return tuple(lines)


def _other_losses(steps: Records) -> dict[str, str]:
    """Return the losses of models trained beside the policy, such as a critic."""
    names = {name for record in steps for name in record if name.endswith("/loss")}
    return {name: name.split("/")[0] for name in sorted(names - {"update/loss"})}


def _outcomes(run: TrainingRun, steps: Records) -> Iterable[Line]:
    yield from _lines(steps, {"rollout/success": "training: success"}, 100)
    scored = any(r.get("rollout/score") != r.get("rollout/success") for r in steps)
    if scored:
        yield from _lines(steps, {"rollout/score": "training: score"}, 100)
    split = run.splits[0]
    yield _evaluated(run, f"{split}: success", lambda e: 100 * e["success"])
    if scored and all("score" in e for e in run.evaluations):
        yield _evaluated(run, f"{split}: score", lambda e: 100 * e["score"])


def _families(run: TrainingRun) -> Iterable[Line]:
    """Yield the success of each family of the validation tasks, if there are several."""
    names = in_order({n for e in run.of_split(run.splits[0]) for n in e["families"]})
    for name in names if len(names) > 1 else ():
        yield _evaluated(run, name, lambda e, name=name: _rate(e["families"].get(name)))  # type: ignore[misc]


def _rate(counts: Sequence[int] | None) -> float:
    return 100 * counts[0] / counts[1] if counts and counts[1] else float("nan")


def _turns(run: TrainingRun) -> Iterable[Line]:
    yield _evaluated(run, run.splits[0], lambda e: float(e["turns"]))


def _evaluated(run: TrainingRun, label: str, value: Callable[[Mapping[str, Any]], float]) -> Line:
    """Return the line of a figure over the evaluations of the validation split."""
    evaluations = run.of_split(run.splits[0])
    steps = tuple(int(e["step"]) for e in evaluations)
    return Line(label, steps, tuple(value(e) for e in evaluations), dotted=True)


def _times(records: Records) -> Iterable[Line]:
    """Yield the seconds of each phase; an evaluation counts for the step before it."""
    seconds: dict[int, dict[str, float]] = {}
    for record in records:
        figures = {k: v for k, v in record.items() if k.startswith("time/") and k.endswith("_s")}
        of_step = seconds.setdefault(int(record["step"]), {})
        for name, duration in figures.items():
            phase = name.removeprefix("time/").removesuffix("_s")
            if phase != "step" and not phase.endswith("_per") and duration is not None:
                of_step[phase] = of_step.get(phase, 0.0) + duration
    seconds.pop(0, None)
    totals = {p: sum(s.get(p, 0.0) for s in seconds.values()) for s in seconds.values() for p in s}
    total = sum(totals.values())
    shown = [p for p in totals if totals[p] > 0.01 * total]
    for phase in sorted(shown, key=lambda p: -totals[p]):
        yield Line(phase, tuple(seconds), tuple(s.get(phase, 0.0) for s in seconds.values()))


def _save(path: Path, drawn: Sequence[Panel], title: str) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = -(-len(drawn) // _COLUMNS)
    figure = Figure(figsize=(13, 2.75 * rows + 0.5))
    FigureCanvasAgg(figure)
    figure.suptitle(title, x=0.045, ha="left", y=0.985, fontsize=12)
    last = max((step for panel in drawn for line in panel.lines for step in line.steps), default=1)
    for place, panel in enumerate(drawn, 1):
        axes = figure.add_subplot(rows, _COLUMNS, place)
        _fill(axes, panel, last)
        if place > len(drawn) - _COLUMNS:
            axes.set_xlabel("training step", fontsize=8)
    figure.subplots_adjust(
        left=0.045, right=0.99, bottom=0.16 / rows, top=1 - 0.22 / rows, wspace=0.18, hspace=0.34
    )
    with fsync.replacing(path) as drawn_file:
        figure.savefig(drawn_file, format=path.suffix[1:], dpi=110)


def _fill(axes: Any, panel: Panel, last: int) -> None:
    from matplotlib.ticker import MaxNLocator

    if panel.stacked:
        _stack(axes, panel.lines)
    for number, line in enumerate(() if panel.stacked else panel.lines):
        colour = _COLOURS[number % len(_COLOURS)]
        _plot(axes, line, colour, _STYLES[number // len(_COLOURS) % len(_STYLES)])
    axes.set_title(panel.title, loc="left", fontsize=9)
    axes.tick_params(labelsize=7, length=2)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    if panel.logarithmic and all(value > 0 for line in panel.lines for value in line.values):
        axes.set_yscale("log")
    else:
        axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.set_xlim(0, max(last, 1) + 0.5 * panel.stacked)
    if panel.top is not None:
        axes.set_ylim(-0.02 * panel.top, 1.02 * panel.top)
    axes.grid(alpha=0.25, linewidth=0.5)
    axes.spines[["top", "right"]].set_visible(False)
    if len(panel.lines) > 1 or panel.lines[0].label not in ("policy", "before clipping"):
        legend = axes.legend(fontsize=7, frameon=True, framealpha=0.7, edgecolor="none", ncols=2)
        legend.set_zorder(9)


def _plot(axes: Any, line: Line, colour: str, style: str) -> None:
    look = {"color": colour, "linestyle": style}
    if len(line.steps) == 1:  # of one point there is no line to see
        look["marker"] = "."
    if line.dotted:
        axes.plot(line.steps, line.values, marker="o", markersize=3, linewidth=1.2, **look)
    elif len(line.steps) <= _SMOOTHED:
        axes.plot(line.steps, line.values, linewidth=1.2, **look)
    else:
        axes.plot(line.steps, line.values, linewidth=0.5, alpha=0.3, **look)
        axes.plot(line.steps, running_mean(line.values), linewidth=1.4, **look)
    axes.lines[-1].set_label(line.label)


def running_mean(values: Sequence[float]) -> list[float]:
    """Return running means over a window of a twentieth of all values."""
    reach = max(len(values) // 40, 1)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    place = np.arange(len(values))
    low, high = np.maximum(place - reach, 0), np.minimum(place + reach + 1, len(values))
    return [float(mean) for mean in (sums[high] - sums[low]) / (high - low)]


def _stack(axes: Any, lines: Sequence[Line]) -> None:
    """Draw stacked bars; if there are many steps, a bar is the mean over neighbouring steps."""
    steps = np.asarray(lines[0].steps, float)
    parts = np.array_split(np.arange(len(steps)), min(len(steps), _BARS))
    place = np.array([steps[part].mean() for part in parts])
    width = 0.9 * (place[1] - place[0]) if len(place) > 1 else 0.8
    floor = np.zeros(len(parts))
    for number, line in enumerate(lines):
        values = np.asarray(line.values)
        height = np.array([values[part].mean() for part in parts])
        colour = _COLOURS[number % len(_COLOURS)]
        axes.bar(place, height, width, floor, color=colour, label=line.label, linewidth=0)
        floor += height
    axes.margins(x=0.01)
