"""Draws success over training steps, and the metrics of one run in nine panels."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from harness.evaluation.breakdowns import in_order
from harness.evaluation.statistics import mean_and_std
from harness.reporting import figure
from harness.reporting.figure import COLOURS, Line, Panel
from harness.reporting.results.agent_names import method_name
from harness.reporting.results.training_runs import TrainingRun
from harness.runs import metrics

Records = Sequence[Mapping[str, Any]]

_SMOOTHED: Final = 60
"""Curves with more steps are drawn faintly, with their running mean above them."""


def draw(path: Path, run: TrainingRun) -> None:
    """Draw the metrics logged so far; before the first training step nothing is drawn."""
    drawn = panels(run, metrics.read(run.folder))
    if drawn:
        title = f"{method_name(run.method)} on {run.world}, seed {run.seed}, by training step"
        last = max(step for panel in drawn for line in panel.lines for step in line.steps)
        figure.draw(path, drawn, title, size=(13 / 3, 2.75), dpi=110, last=last)


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
    losses = {name for record in steps for name in record if name.endswith("/loss")}
    others = {name: name.split("/")[0] for name in sorted(losses - {"update/loss"})}
    turns = _evaluated(run, run.splits[0], lambda e: float(e["turns"]))
    found = [
        Panel("success and score (%)", tuple(_outcomes(run, steps)), 100),
        Panel(f"success by family, {run.splits[0]} (%)", tuple(_families(run)), 100),
        Panel("turns of an episode", (*_lines(steps, {"rollout/turns": "training"}), turns)),
        Panel("loss", _lines(steps, {"update/loss": "policy" if others else "", **others})),
        Panel("gradient norm", _lines(steps, {"update/grad_norm": ""})),
        Panel("entropy (nats a token)", _lines(steps, {"update/entropy": ""})),
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
            mean = running_mean(tuple(values.values())) if len(values) > _SMOOTHED else ()
            lines.append(Line.through(label, values, smoothed=mean))
    return tuple(lines)


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
    names = in_order({n for e in run.on_split(run.splits[0]) for n in e["families"]})

    def rate(evaluation: Mapping[str, Any], name: str) -> float:
        won, count = evaluation["families"].get(name) or (0, 0)
        return 100 * won / count if count else float("nan")

    for name in names if len(names) > 1 else ():
        yield _evaluated(run, name, partial(rate, name=name))


def _evaluated(run: TrainingRun, label: str, value: Callable[[Mapping[str, Any]], float]) -> Line:
    """Return the line of a figure over the evaluations of the validation split."""
    points = {int(e["step"]): value(e) for e in run.on_split(run.splits[0])}
    return Line.through(label, points, marker="o")


def _times(records: Records) -> Iterable[Line]:
    """Yield the seconds of each phase; an evaluation counts for the step before it."""
    seconds: dict[int, dict[str, float]] = {}
    for record in records:
        figures = {k: v for k, v in record.items() if k.startswith("time/") and k.endswith("_s")}
        phases = seconds.setdefault(int(record["step"]), {})
        for name, duration in figures.items():
            phase = name.removeprefix("time/").removesuffix("_s")
            if phase != "step" and not phase.endswith("_per") and duration is not None:
                phases[phase] = phases.get(phase, 0.0) + duration
    seconds.pop(0, None)
    totals = {p: sum(s.get(p, 0.0) for s in seconds.values()) for s in seconds.values() for p in s}
    total = sum(totals.values())
    shown = [p for p in totals if totals[p] > 0.01 * total]
    for phase in sorted(shown, key=lambda p: -totals[p]):
        yield Line.through(phase, {step: s.get(phase, 0.0) for step, s in seconds.items()})


def running_mean(values: Sequence[float]) -> tuple[float, ...]:
    """Return running means over a window of a twentieth of all values."""
    reach = max(len(values) // 40, 1)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    place = np.arange(len(values))
    low, high = np.maximum(place - reach, 0), np.minimum(place + reach + 1, len(values))
    return tuple(((sums[high] - sums[low]) / (high - low)).tolist())


_MOST_TITLE: Final = 85
"""Characters of a line that fit above the picture."""


def draw_success(path: str | Path, groups: Sequence[Sequence[TrainingRun]]) -> None:
    """Draw learning curves into a `.png` or `.svg` file; an existing one is overwritten.

    For one run it shows the success of each split with its 95 % interval, the mean score if it
    differs, and success on the training tasks. For several it shows the mean of each group on the
    validation split, with a band of one deviation.
    """
    figure.check_kind(path)
    single = len(groups) == 1 and len(groups[0]) == 1
    drawn = by_split(groups[0][0]) if single else [[group_curve(group)] for group in groups]
    lines = [
        replace(line, colour=COLOURS[number % len(COLOURS)])
        for number, curves in enumerate(drawn)
        for line in curves
    ]
    training = _on_training_tasks(groups[0][0]) if single else []
    labels = ("training step", "success (%)")
    runs = [run for group in groups for run in group]
    methods = ", ".join(dict.fromkeys(method_name(run.method) for run in runs))
    title = f"{methods} on {'; '.join(dict.fromkeys(run.world for run in runs))}"
    title = textwrap.fill(title, _MOST_TITLE)
    figure.draw(path, [Panel(title, (*training, *lines), 100, labels=labels)], size=(7, 4.2))


def by_split(run: TrainingRun) -> list[list[Line]]:
    """Return the curves of a run, grouped by split; a split that is evaluated less has points."""
    found = []
    for split in run.splits:
        evaluations = run.on_split(split)
        curves = [_curve(f"{split} (95 % interval)", evaluations)]
        scored = [e for e in evaluations if "score" in e]
        if any(abs(e["score"] - e["success"]) > 1e-9 for e in scored):
            scores = {int(e["step"]): 100 * float(e["score"]) for e in scored}
            curves.append(Line.through(f"{split}: score", scores, dashed=True))
        if len(evaluations) < len(run.on_split(run.splits[0])):
            curves = [
                replace(line, points=True, joined=False, marker="x" if line.dashed else "s")
                for line in curves
            ]
        found.append(curves)
    return found


def _curve(label: str, evaluations: Sequence[Mapping[str, Any]]) -> Line:
    """Return the curve of success, with its 95 % intervals."""
    points = {int(e["step"]): 100 * float(e["success"]) for e in evaluations}
    ends = [[100 * float(end) for end in e["interval"]] for e in evaluations]
    return Line.through(label, points, ends, marker="o")


def group_curve(group: Sequence[TrainingRun]) -> Line:
    """Return the mean validation success at common steps, ± one deviation, or 95 % for one run."""
    split, label = group[0].splits[0], method_name(group[0].method)
    if len(group) == 1:
        label = f"{label}, {group[0].folder.resolve().name} (95 % interval)"
        return _curve(label, group[0].on_split(split))
    by_step = [
        {int(e["step"]): 100 * float(e["success"]) for e in run.on_split(split)} for run in group
    ]
    steps = sorted(set.intersection(*map(set, by_step)))
    figures = {step: mean_and_std([run[step] for run in by_step]) for step in steps}
    means = {step: mean or 0.0 for step, (mean, _) in figures.items()}
    stds = {step: std or 0.0 for step, (_, std) in figures.items()}
    ends = [(means[step] - stds[step], means[step] + stds[step]) for step in steps]
    return Line.through(f"{label} ({len(group)} seeds, mean ± std)", means, ends, marker="o")


def _on_training_tasks(run: TrainingRun) -> list[Line]:
    records = [r for r in metrics.read(run.folder) if r.get("rollout/success") is not None]
    points = {int(r["step"]): 100 * float(r["rollout/success"]) for r in records}
    line = Line.through("training tasks", points, colour="#9ca3af", width=0.8)
    return [line] if points else []
