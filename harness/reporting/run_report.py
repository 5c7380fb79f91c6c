"""The report of a training run: its curves and a table."""

from __future__ import annotations

import logging
import math
import shlex
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from agentgyms.data import writing
from harness.evaluation.breakdowns import in_order
from harness.reporting.curves import training_curves
from harness.reporting.results import setting, training_runs
from harness.reporting.results.training_runs import TrainingRun
from harness.reporting.table import Table, escaped
from harness.types.errors import ResultError

_log = logging.getLogger(__name__)

_INTERVAL: Final = "95 % interval"
_EVERY_S: Final = 30.0
"""Minimum seconds between two drawings, because one may take longer than a short step."""


class RunReport:
    """Updates the figures and the table of a training run."""

    def __init__(self, folder: Path, *, pictures: bool = True) -> None:
        self._folder, self._pictures, self._drawn = folder, pictures, -math.inf

    def write(self, final: bool) -> None:
        """Write the table, and draw at most twice a minute and at the end; log a failed file."""
        try:
            due = self._pictures and (final or time.monotonic() - self._drawn > _EVERY_S)
            _write(training_runs.read(self._folder), pictures=due)
            self._drawn = time.monotonic() if due else self._drawn
        except OSError as e:  # the run's records matter more than pictures of them
            _log.warning(
                "%s; draw it later with: harness report %s",
                _reason(self._folder, e),
                shlex.quote(str(self._folder)),
            )


def write(folder: Path) -> None:
    """Write `curve.png`, `training.png` and `table.md` of a run, or raise `ResultError`."""
    run = training_runs.read(folder)
    try:
        _write(run, pictures=True)
    except OSError as e:
        raise ResultError(_reason(folder, e)) from e


def _reason(folder: Path, error: OSError) -> str:
    return f"{folder} cannot be reported: {error.strerror or error}"


def _write(run: TrainingRun, *, pictures: bool) -> None:
    title = run.world if setting.NOT_THE_BENCHMARK in run.world else ""
    writing.write(run.folder / "table.md", table(run.evaluations, title))
    if pictures:
        training_curves.draw_success(run.folder / "curve.png", [[run]])
        training_curves.draw(run.folder / "training.png", run)


def sentence(folder: Path) -> str:
    """Return a run's gain, such as `27.9 -> 62.9 % of 240 held-out tasks (valid_seen)`.

    It compares the success of the first and the last evaluation of each split; "" without two of
    them. Generated tasks are named.
    """
    run = training_runs.read(folder)
    texts = []
    for split in run.splits:
        found = run.on_split(split)
        ends = found[0], found[-1]
        if len(found) > 1:
            before, after = (f"{100 * e['success']:.1f}" for e in ends)
            counts = [sum(count for _, count in e["families"].values()) for e in ends]
            of = f" % of {counts[0]}" if counts[0] != counts[1] else ""
            texts.append(f"{before}{of} -> {after} % of {counts[1]} held-out tasks ({split})")
    texts += [setting.NOT_THE_BENCHMARK] * (bool(texts) and setting.NOT_THE_BENCHMARK in run.world)
    return "; ".join(texts)


def table(evaluations: Sequence[Mapping[str, Any]], title: str = "") -> str:
    """Return a Markdown table, a row per split and step: success by family, over all, and score.

    Only the first and the last evaluation of each split are shown, in percent with 95 % Wilson
    intervals over all tasks. A warning stands below scores of a programmatic judge.
    """
    families = in_order({name for e in evaluations for name in e["families"]})
    headings = ["split", "step", *families, "all", _INTERVAL, "score", _INTERVAL, "turns", "tasks"]
    rows = []
    for split in dict.fromkeys(e["split"] for e in evaluations):
        played = [e for e in evaluations if e["split"] == split]
        rows += [_row(one, families) for one in played[:1] + played[1:][-1:]]
    warnings = dict.fromkeys(w for e in evaluations for w in setting.warnings(e.get("parties", {})))
    above = [f"**{escaped(title)}**\n"] if title else []
    below = [f"\n{text}" for text in warnings]
    return "\n".join([*above, Table(headings, rows).markdown(), *below]) + "\n"


def _row(evaluation: Mapping[str, Any], families: Sequence[str]) -> list[str]:
    rates = [evaluation["families"].get(name, [0, 0]) for name in families]
    return [
        evaluation["split"],
        str(evaluation["step"]),
        *(f"{100 * won / count:.1f}" if count else "-" for won, count in rates),
        *_percent(evaluation["success"], evaluation["interval"]),
        *_percent(evaluation["score"], evaluation["score_interval"]),
        f"{evaluation['turns']:.1f}",
        str(sum(count for _, count in rates)),
    ]


def _percent(mean: float, interval: Sequence[float]) -> tuple[str, str]:
    low, high = interval
    return f"{100 * mean:.1f}", f"{100 * low:.1f} to {100 * high:.1f}"
