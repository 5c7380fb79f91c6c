"""The HTML page of one evaluation or of several side by side: figures and every episode."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from agentgyms.core.serialization import encode_number
from agentgyms.data import writing
from harness.evaluation.breakdowns import in_order
from harness.evaluation.episodes import episode_record
from harness.evaluation.pairing import pair
from harness.reporting import pages
from harness.reporting.evaluation_page.packed_episodes import Embedded, Packing
from harness.reporting.results import agent_names, setting
from harness.reporting.results.loading import LoadedEvaluation
from harness.reporting.results.run_differences import run_differences
from harness.reporting.tables.settings_table import settings_of
from harness.rollouts.self_play import goal_of
from harness.types.errors import PairingError

_PAGE: Final = pages.Page(
    Path(__file__).parent / "page",
    (
        *("contents.js", "texts.js", "results.js", "tasks.js", "listing.js", "turns.js"),
        *("reader.js", "main.js"),
    ),
)
LIMIT: Final = 40_000_000
"""Maximum bytes of a page."""

_SCRIPT_TAG: Final = len('<script type="text/plain" id="preamble-1000000"></script>\n')
"""Bytes around a packed episode or preamble, at most."""

_MOST_LABEL, _MOST_GOAL, _MOST_ERROR = 200, 300, 1000
"""Maximum characters of an evaluation's label, of a listed goal, and of an error."""


def write(path: str | Path, evaluations: Sequence[LoadedEvaluation], *, limit: int = LIMIT) -> None:
    """Write the page of one or more evaluations; an existing file is overwritten.

    Above `limit` bytes prompts are left out, then turns of the longest episodes. Raises
    `ResultError`, `DataMissing` or `DataCorrupt` if recordings are changed, missing or incomplete.
    """
    writing.write(Path(path), render(evaluations, limit=limit))


def render(evaluations: Sequence[LoadedEvaluation], *, limit: int = LIMIT) -> str:
    """Return the page; see `write`."""
    if not evaluations:
        raise ValueError("a page needs at least one evaluation, got none")
    tasks, packing = _Tasks(), Packing()
    values = {
        "title": _title(evaluations),
        "evaluations": [_evaluation(one, tasks) for one in evaluations],
        "tasks": tasks.rows,
        "families": in_order({name for one in evaluations for name in one.figures["families"]}),
        "episodes": [
            row
            for number, one in enumerate(evaluations)
            for row in _episodes(number, one, tasks, packing)
        ],
        "pairs": [
            {"first": i, "second": j, **_paired(a.result, b.result)}
            for (i, a), (j, b) in itertools.combinations(enumerate(evaluations), 2)
        ],
        "differences": [
            {"title": one.title, "settings": one.lines, "warning": one.warning}
            for one in run_differences(evaluations)
        ],
    }
    empty = Embedded([], [], False, list(range(packing.count)))
    around = len(_page(values, empty).encode()) + 2 * packing.count * _SCRIPT_TAG
    return _page(values, packing.fit(limit - around))


def _page(values: dict[str, Any], embedded: Embedded) -> str:
    left_out = {"prompts": not embedded.prompts, "shortened": embedded.shortened}
    return _PAGE.render(
        title=values["title"],
        data={**values, "left_out": left_out},
        packed={"episode": embedded.episodes, "preamble": embedded.preambles},
    )


def _title(evaluations: Sequence[LoadedEvaluation]) -> str:
    """Return who played what on which data; evaluations on different tasks give their names."""
    labels = [one.label[:_MOST_LABEL] for one in evaluations]
    played = set()
    for one in evaluations:
        data = one.result["environment"].get("data_version")
        where = f"{setting.setting_of(one.result).world} {one.split}".strip()
        played.add(f"{where}, data {data}" if data else where)
    if len(played) > 1:
        return " · ".join(labels)
    model = str(evaluations[0].result["model"]["name"])
    who = agent_names.short(model)[:_MOST_LABEL] if len(labels) == 1 else ""
    return f"{who or ' · '.join(labels)} on {played.pop()}"


class _Tasks:
    """The tasks of all evaluations, each once: id, family and goal."""

    def __init__(self) -> None:
        self.rows: list[list[str]] = []
        self._numbers: dict[str, int] = {}

    def number(self, task_id: str, family: str = "", goal: str = "") -> int:
        """Return the number of a task; a new task is added, its first goal is kept."""
        number = self._numbers.setdefault(task_id, len(self.rows))
        if number == len(self.rows):
            self.rows.append([task_id, family, ""])
        self.rows[number][2] = self.rows[number][2] or goal[:_MOST_GOAL]
        return number


def _evaluation(one: LoadedEvaluation, tasks: _Tasks) -> dict[str, Any]:
    result = one.result
    played = [tasks.number(task_id, family) for task_id, family in result["tasks"]]
    where = setting.setting_of(result)
    of_data = setting.labels(where.data)  # that it is not the benchmark
    return {
        "label": one.label[:_MOST_LABEL],
        "settings": settings_of(result),
        "warnings": [*(f"{where.world}: {text}" for text in of_data), *setting.warnings(result)],
        "seeds": result["seeds"],
        "episodes": result["episodes"],
        "missing": [
            [tasks.number(one["task_id"]), one["seed"], one["trial"], one["error"][:_MOST_ERROR]]
            for one in result["missing"]
        ],
        "figures": result["figures"],
        "tasks": played,
    }


def _paired(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Return the comparison of two evaluations, or why there is none."""
    try:
        found = pair(first, second)
    except PairingError as e:
        return {"why": str(e)[:_MOST_ERROR]}
    counts = ("units", "wins", "losses", "both", "neither")
    return {
        **{name: getattr(found, name) for name in counts},
        "success": dataclasses.asdict(found.success),
        "score": dataclasses.asdict(found.score),
        "p": found.p_value,
    }


def _episodes(
    number: int, one: LoadedEvaluation, tasks: _Tasks, packing: Packing
) -> Iterator[list[Any]]:
    """Yield a row for each episode of an evaluation, and pack the recorded ones."""
    if "recordings" not in one.result:  # a training run's episodes have outcomes only
        for index, *outcome in one.result["outcomes"]:
            task = tasks.number(one.result["tasks"][index][0])
            yield [number, task, *outcome, "", *[None] * 5]
        return
    for recording in one.recordings():
        record = episode_record(recording)
        task = tasks.number(record.task_id, record.family, goal_of(recording))
        outcome = [record.success, encode_number(record.score), record.turns]
        counts = [record.invalid, record.failed, record.unfinished, record.cut]
        about = [record.stop_reason.value, *counts, packing.count]
        yield [number, task, record.seed, record.trial, *outcome, *about]
        packing.add(recording)
