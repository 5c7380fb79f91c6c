"""One HTML file for an evaluation, or for several side by side: figures, and every episode."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from agentgyms.wire import encode_number
from harness.errors import PairingError
from harness.evaluation.breakdowns import in_order
from harness.evaluation.episodes import record_of
from harness.evaluation.pairing import pair
from harness.pages import build, safe_json, safe_text
from harness.reporting import others
from harness.reporting.embedding import Embedded, Packing
from harness.reporting.loading import Evaluated
from harness.reporting.settings_shown import settings_of
from harness.seats import goal_of

FILES: Final = Path(__file__).parent / "page"
SCRIPTS: Final = (
    "contents.js",
    "texts.js",
    "results.js",
    "tasks.js",
    "listing.js",
    "turns.js",
    "reader.js",
    "main.js",
)
LIMIT: Final = 40_000_000
"""Bytes of a page, at most."""

_MOST_LABEL: Final = 200
"""Characters of an evaluation's label."""

_MOST_GOAL: Final = 300
"""Characters of a goal in the list of episodes."""

_MOST_ERROR: Final = 1000
"""Characters of what befell a missing episode."""


def write(path: str | Path, evaluations: Sequence[Evaluated], *, limit: int = LIMIT) -> None:
    """Write the page; a file that is there is overwritten.

    Args:
        path: Of the file.
        evaluations: One or more.
        limit: Bytes of the page, at most. Where the episodes take more, all prompts are left out,
            then turns of the longest episodes, and the page says so.

    Raises:
        ValueError: There is no evaluation.
        ResultError: Recordings were changed after they were counted.
        DataMissing: The recordings are gone.
        DataCorrupt: They are no episodes of an evaluation, or not whole.
    """
    Path(path).write_text(render(evaluations, limit=limit), encoding="utf-8")


def render(evaluations: Sequence[Evaluated], *, limit: int = LIMIT) -> str:
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
        "pairs": _pairs(evaluations),
    }
    bare = _filled(values, Embedded([], [], False, list(range(packing.count))))
    around = len(bare.encode()) + 2 * packing.count * len(_packed("preamble", packing.count, ""))
    return _filled(values, packing.fit(limit - around))


def _filled(values: dict[str, Any], embedded: Embedded) -> str:
    left_out = {"prompts": not embedded.prompts, "shortened": embedded.shortened}
    packed = [_packed("episode", i, text) for i, text in enumerate(embedded.episodes)]
    packed += [_packed("preamble", i, text) for i, text in enumerate(embedded.preambles)]
    parts = {
        "title": safe_text(values["title"]),
        "json": safe_json({**values, "left_out": left_out}),
        "packed": "".join(packed),
    }
    return build(FILES, SCRIPTS, parts)


def _packed(kind: str, number: int, text: str) -> str:
    return f'<script type="text/plain" id="{kind}-{number}">{text}</script>\n'


def _title(evaluations: Sequence[Evaluated]) -> str:
    labels = [one.label[:_MOST_LABEL] for one in evaluations]
    return labels[0] if len(labels) == 1 else " · ".join(labels)


class _Tasks:
    """The tasks of all evaluations, each once.

    Attributes:
        rows: Of each its id, family and goal.
    """

    def __init__(self) -> None:
        self.rows: list[list[str]] = []
        self._numbers: dict[str, int] = {}

    def number(self, task_id: str, family: str = "") -> int:
        """Return the number of a task, which is kept from now on."""
        if task_id not in self._numbers:
            self._numbers[task_id] = len(self.rows)
            self.rows.append([task_id, family, ""])
        return self._numbers[task_id]

    def tell_goal(self, number: int, goal: str) -> None:
        """Keep the goal of a task."""
        self.rows[number][2] = self.rows[number][2] or goal[:_MOST_GOAL]


def _evaluation(one: Evaluated, tasks: _Tasks) -> dict[str, Any]:
    result = one.result
    played = [tasks.number(task_id, family) for task_id, family in result["tasks"]]
    return {
        "label": one.label[:_MOST_LABEL],
        "settings": settings_of(result),
        "warnings": others.warnings(result),
        "seeds": result["seeds"],
        "episodes": result["episodes"],
        "missing": [
            [
                tasks.number(lost["task_id"]),
                lost["seed"],
                lost["trial"],
                lost["error"][:_MOST_ERROR],
            ]
            for lost in result["missing"]
        ],
        "figures": result["figures"],
        "tasks": played,
    }


def _pairs(evaluations: Sequence[Evaluated]) -> list[dict[str, Any]]:
    """Return every two evaluations compared task by task, or why they cannot be."""
    return [
        {"first": i, "second": j, **_paired(evaluations[i].result, evaluations[j].result)}
        for i, j in itertools.combinations(range(len(evaluations)), 2)
    ]


def _paired(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    try:
        found = pair(first, second)
    except PairingError as e:
        return {"why": str(e)[:_MOST_ERROR]}
    return {
        "units": found.units,
        "wins": found.wins,
        "losses": found.losses,
        "both": found.both,
        "neither": found.neither,
        "success": dataclasses.asdict(found.success),
        "score": dataclasses.asdict(found.score),
        "p": found.p_value,
    }


def _episodes(number: int, one: Evaluated, tasks: _Tasks, packing: Packing) -> Iterator[list[Any]]:
    """Yield a row for each episode of an evaluation, and pack those that were recorded."""
    if "recordings" not in one.result:
        yield from _outcomes(number, one.result, tasks)
        return
    for recording in one.recordings():
        record = record_of(recording)
        task = tasks.number(record.task_id, record.family)
        tasks.tell_goal(task, goal_of(recording))
        yield [
            number,
            task,
            record.seed,
            record.trial,
            record.success,
            encode_number(record.score),
            record.turns,
            record.stop_reason.value,
            record.invalid,
            record.failed,
            record.unfinished,
            record.cut,
            packing.count,
        ]
        packing.add(recording)


def _outcomes(number: int, result: dict[str, Any], tasks: _Tasks) -> Iterator[list[Any]]:
    """Yield rows of a training run's episodes, of which only the outcomes are kept."""
    for index, seed, trial, success, score, turns in result["outcomes"]:
        task = tasks.number(result["tasks"][index][0])
        yield [number, task, seed, trial, success, score, turns, "", *[None] * 5]
