"""Comparisons of two evaluations, as Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final

from harness.evaluation.pairing import Difference, Pairing, pair
from harness.reporting.results.loading import LoadedEvaluation
from harness.reporting.results.setting import setting_of
from harness.reporting.table import escaped
from harness.types.errors import PairingError

MOST_TASKS: Final = 30
"""Maximum number of listed tasks with different outcomes."""


def markdown(evaluations: Sequence[LoadedEvaluation]) -> str:
    """Return the comparison of each pair of evaluations of one environment and split.

    Raises `PairingError` if no two have the same, or two cannot be compared.
    """
    pairs = [
        (a, b)
        for a, b in combinations(evaluations, 2)
        if (a.env_id, a.split) == (b.env_id, b.split)
    ]
    if not pairs:
        given = ", ".join(f"{one.env_id} {one.split}" for one in evaluations)
        raise PairingError(
            "a comparison needs two evaluations of one environment and split, got " + given
        )
    return "\n".join("\n".join(_lines(a, b, pair(a.result, b.result))) for a, b in pairs)


def _lines(first: LoadedEvaluation, second: LoadedEvaluation, paired: Pairing) -> Iterator[str]:
    yield f"**{escaped(first.label)} against {escaped(second.label)}**\n"
    played = dict.fromkeys(setting_of(one.result).title for one in (first, second))
    yield f"- {escaped('; '.join(played))}"
    yield (
        f"- the same {paired.units} episodes of {paired.tasks} tasks; left out: "
        f"{paired.only_first} that only the first finished, {paired.only_second} only the second"
    )
    for name, what in (("kwargs", "the environment's arguments"), ("max_turns", "turn limits")):
        values = [one.result["environment"].get(name) for one in (first, second)]
        if values[0] != values[1]:
            a, b = (escaped(json.dumps(value, sort_keys=True)) for value in values)
            yield f"- {what} differ, and so may the tasks: {a} and {b}"
    yield (
        f"- wins {paired.wins}, losses {paired.losses}, ties {paired.ties} "
        f"({paired.both} solved by both, {paired.neither} by none)"
    )
    yield f"- difference of success: {points(paired.success)}"
    yield f"- difference of score: {points(paired.score)}"
    if paired.p_value is not None:
        yield f"- exact McNemar test: p = {paired.p_value:.4f}"
    for title, won in (("first", True), ("second", False)):
        names = [f"{one.task_id} (seed {one.seed})" for one in paired.changed if one.first == won]
        if names:
            more = f", and {len(names) - MOST_TASKS} more" if names[MOST_TASKS:] else ""
            yield f"- solved by the {title} alone: {escaped(', '.join(names[:MOST_TASKS]))}{more}"
    yield ""


def points(difference: Difference) -> str:
    """Return a difference in points of percent, with its interval."""
    text = f"{100 * difference.mean:+.1f} points"
    if difference.interval is None:
        return f"{text}; no interval, since all tasks differ equally"
    low, high = difference.interval
    return f"{text} (95 % interval {100 * low:+.1f} to {100 * high:+.1f})"
