"""What people look at while a run trains: its curves as pictures, and a table."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from harness.evaluation.breakdowns import in_order
from harness.evaluation.statistics import mean_and_std, wilson
from harness.reporting import curves, others, training_curves, training_runs
from harness.reporting.training_runs import TrainingRun

_EVERY_S: Final = 30.0
"""Between two drawings, which may take longer than a short step."""


class Pictures:
    """Keeps the pictures and the table of a run that trains up to date.

    Args:
        folder: The run's.
    """

    def __init__(self, folder: Path) -> None:
        """Draw nothing yet."""
        self._folder, self._drawn = folder, -math.inf

    def write(self, *, final: bool) -> None:
        """Write the table, and draw at most twice a minute and at the end."""
        run = training_runs.read(self._folder)
        _write_table(run)
        if final or time.monotonic() - self._drawn > _EVERY_S:
            _draw(run)
            self._drawn = time.monotonic()


def write(folder: Path) -> None:
    """Write `curve.png`, `training.png` and `table.md` from a run's evaluations and metrics.

    Args:
        folder: The run's. Runs of earlier versions, whose evaluations have no score, do as well.

    Raises:
        ResultError: It is no run's folder, is damaged, or has no evaluation yet.
    """
    run = training_runs.read(folder)
    _write_table(run)
    _draw(run)


def _write_table(run: TrainingRun) -> None:
    (run.folder / "table.md").write_text(table(run.evaluations), encoding="utf-8")


def _draw(run: TrainingRun) -> None:
    curves.draw(run.folder / "curve.png", [[run]])
    training_curves.draw(run.folder / "training.png", run)


def table(evaluations: Sequence[Mapping[str, Any]]) -> str:
    """Return a Markdown table: one row per split and step, success by family, over all, and score.

    Only the first and the last evaluation of each split are shown; rates and scores are in percent,
    with their 95 % Wilson intervals over all tasks. Scores that a program counted are called so.
    """
    families = in_order({name for e in evaluations for name in e["families"]})
    lines = [
        f"| split | step | {' | '.join(families)} | all | 95 % interval | score | 95 % interval "
        "| turns | tasks |",
        "|---" * (len(families) + 8) + "|",
    ]
    for split in dict.fromkeys(e["split"] for e in evaluations):
        of_split = [e for e in evaluations if e["split"] == split]
        lines += [_row(evaluation, families) for evaluation in of_split[:1] + of_split[1:][-1:]]
    told = dict.fromkeys(w for e in evaluations for w in others.warnings(e.get("parties", {})))
    return "\n".join([*lines, *(f"\n{warning}" for warning in told)]) + "\n"


def _row(evaluation: Mapping[str, Any], families: Sequence[str]) -> str:
    rates = [evaluation["families"].get(name, [0, 0]) for name in families]
    cells = [f"{100 * won / count:.1f}" if count else "-" for won, count in rates]
    means = [_percent(evaluation["success"], evaluation["interval"])]
    means.append(_percent(*_score(evaluation)))
    count = sum(count for _, count in rates)
    return (
        f"| {evaluation['split']} | {evaluation['step']} | {' | '.join([*cells, *means])} "
        f"| {evaluation['turns']:.1f} | {count} |"
    )


def _score(evaluation: Mapping[str, Any]) -> tuple[float, Sequence[float]]:
    """Return the mean score and its interval, of earlier versions' runs from their episodes."""
    if "score" in evaluation:
        return evaluation["score"], evaluation["score_interval"]
    scores = [float(e["score"]) for e in evaluation["episodes"] if not e.get("error")]
    mean = mean_and_std(scores)[0] or 0.0
    return mean, wilson(mean, len(scores))


def _percent(mean: float, interval: Sequence[float]) -> str:
    low, high = interval
    return f"{100 * mean:.1f} | {100 * low:.1f} to {100 * high:.1f}"
