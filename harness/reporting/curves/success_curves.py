"""Draws success over training steps, for one run or for several."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from harness.evaluation.statistics import mean_and_std
from harness.reporting.figure import COLOURS, Line, Panel, check_kind
from harness.reporting.figure import draw as draw_panels
from harness.reporting.results.agent_names import method_name
from harness.reporting.results.training_runs import TrainingRun
from harness.runs import metrics

_MOST_TITLE: Final = 85
"""Characters of a line that fit above the picture."""


def draw(path: str | Path, groups: Sequence[Sequence[TrainingRun]]) -> None:
    """Draw learning curves into a `.png` or `.svg` file; an existing one is overwritten.

    For one run: success of each split with its 95 % interval, the mean score if it differs
    from success, and success on the training tasks. For several: one line for each group of
    runs that differ in their seeds alone, the mean on the validation split with a band of one
    deviation.
    """
    check_kind(path)
    single = len(groups) == 1 and len(groups[0]) == 1
    drawn = by_split(groups[0][0]) if single else [[group_curve(group)] for group in groups]
    lines = [
        replace(line, colour=COLOURS[number % len(COLOURS)])
        for number, curves in enumerate(drawn)
        for line in curves
    ]
    training = _training(groups[0][0]) if single else []
    labels = ("training step", "success (%)")
    runs = [run for group in groups for run in group]
    methods = ", ".join(dict.fromkeys(method_name(run.method) for run in runs))
    title = f"{methods} on {'; '.join(dict.fromkeys(run.world for run in runs))}"
    title = textwrap.fill(title, _MOST_TITLE)
    draw_panels(path, [Panel(title, (*training, *lines), 100, labels=labels)], size=(7, 4.2))


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
    """Return the mean success over runs on their validation split, at the steps that all have.

    The band is one standard deviation (ddof 1) to both sides; for a single run it is the 95 %
    interval.
    """
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


def _training(run: TrainingRun) -> list[Line]:
    records = [r for r in metrics.read(run.folder) if r.get("rollout/success") is not None]
    points = {int(r["step"]): 100 * float(r["rollout/success"]) for r in records}
    line = Line.through("training tasks", points, colour="#9ca3af", width=0.8)
    return [line] if points else []
