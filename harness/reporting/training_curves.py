"""Draws what a run logs at every step: one picture of nine panels, for looking after a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from harness import metrics
from harness.evaluation.breakdowns import in_order
from harness.reporting.naming import method_name
from harness.reporting.training_runs import TrainingRun

Records = Sequence[Mapping[str, Any]]

_COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#4d4d4d")
"""Okabe and Ito's, which colour-blind people tell apart, without yellow."""
_STYLES: Final = ("-", "--", ":")
_SMOOTHED: Final = 60
"""Longer courses are drawn faintly, with their running mean above them."""
_BARS: Final = 60
_COLUMNS: Final = 3


@dataclass(frozen=True, slots=True)
class Line:
    """The course of one figure.

    Attributes:
        label: What it is.
        steps: Training steps.
        values: At each of them.
        dotted: Whether each value is marked: evaluations are, which are few.
    """

    label: str
    steps: tuple[int, ...]
    values: tuple[float, ...]
    dotted: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """One of the picture's parts.

    Attributes:
        title: Above it.
        lines: In it.
        top: The largest value shown, or None for that of the lines.
        logarithmic: Values that are all positive are drawn on a logarithmic axis.
        stacked: Lines lie on each other, as areas.
    """

    title: str
    lines: tuple[Line, ...]
    top: float | None = None
    logarithmic: bool = False
    stacked: bool = False


def draw(path: Path, run: TrainingRun) -> None:
    """Draw what a run has logged so far; without a training step there is nothing to draw.

    Args:
        path: Of the picture, a `.png`; a file that is there is overwritten.
        run: Of any version: panels without figures are left out.
    """
    drawn = panels(run, metrics.read(run.folder))
    if drawn:
        _save(path, drawn, f"{method_name(run.method)} on {run.env_id}, seed {run.seed}")


def panels(run: TrainingRun, records: Records) -> list[Panel]:
    """Return the panels that have something to show."""
    steps = [record for record in records if "update/loss" in record]
    if not steps:
        return []
    shares = {
        "update/clipped_share": "clipped tokens",
        "rollout/invalid_share": "invalid turns",
        "rollout/unfinished_share": "cut responses",
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
        Panel("loss", _lines(steps, {"update/loss": "policy", **_others_losses(steps)})),
        Panel("gradient norm", _lines(steps, {"update/grad_norm": "before clipping"})),
        Panel("entropy (nats a token)", _lines(steps, {"update/entropy": "policy"})),
        Panel("KL divergence (nats a token)", _lines(steps, distances), logarithmic=True),
        Panel("shares (%)", _lines(steps, shares, 100)),
        Panel("seconds a step", tuple(_times(records)), stacked=True),
    ]
    return [panel for panel in found if panel.lines]


def _lines(records: Records, names: Mapping[str, str], scale: float = 1.0) -> tuple[Line, ...]:
    """Return a line for each figure that some record has."""
    lines = []
    for name, label in names.items():
        told = {int(r["step"]): scale * r[name] for r in records if r.get(name) is not None}
        if told:
            lines.append(Line(label, tuple(told), tuple(told.values())))
    return tuple(lines)


def _others_losses(steps: Records) -> dict[str, str]:
    """Return the losses of what learns beside the policy, such as a critic."""
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
    names = in_order({n for e in _validations(run) for n in e["families"]})
    for name in names if len(names) > 1 else ():
        yield _evaluated(run, name, lambda e, name=name: _rate(e["families"].get(name)))  # type: ignore[misc]


def _rate(counts: Sequence[int] | None) -> float:
    return 100 * counts[0] / counts[1] if counts and counts[1] else float("nan")


def _turns(run: TrainingRun) -> Iterable[Line]:
    yield _evaluated(run, run.splits[0], lambda e: float(e["turns"]))


def _evaluated(run: TrainingRun, label: str, value: Callable[[Mapping[str, Any]], float]) -> Line:
    told = _validations(run)
    steps, values = tuple(int(e["step"]) for e in told), tuple(value(e) for e in told)
    return Line(label, steps, values, dotted=True)


def _validations(run: TrainingRun) -> list[dict[str, Any]]:
    told = [e for e in run.evaluations if e["split"] == run.splits[0]]
    return sorted(told, key=lambda e: int(e["step"]))


def _times(records: Records) -> Iterable[Line]:
    """Yield the seconds of each phase, those of evaluations with the step they follow."""
    seconds: dict[int, dict[str, float]] = {}
    for record in records:
        told = {k: v for k, v in record.items() if k.startswith("time/") and k.endswith("_s")}
        of_step = seconds.setdefault(int(record["step"]), {})
        for name, spent in told.items():
            phase = name.removeprefix("time/").removesuffix("_s")
            if phase != "step" and not phase.endswith("_per") and spent is not None:
                of_step[phase] = of_step.get(phase, 0.0) + spent
    seconds.pop(0, None)
    totals = {p: sum(s.get(p, 0.0) for s in seconds.values()) for s in seconds.values() for p in s}
    whole = sum(totals.values())
    shown = [p for p in totals if totals[p] > 0.01 * whole]
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
    figure.savefig(path, dpi=110)


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
    """Return the mean of each value and those around it, over a twentieth of all."""
    reach = max(len(values) // 40, 1)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    place = np.arange(len(values))
    low, high = np.maximum(place - reach, 0), np.minimum(place + reach + 1, len(values))
    return [float(mean) for mean in (sums[high] - sums[low]) / (high - low)]


def _stack(axes: Any, lines: Sequence[Line]) -> None:
    """Draw bars of the lines' parts; of many steps, the means of neighbours."""
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
