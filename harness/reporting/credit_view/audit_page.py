"""The HTML page of an audit: the figures, then each turn's truth beside every method's credit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Final

import numpy as np

from agentgyms.core.env import Feedback
from harness.audit.agreement import NAMES, Agreement
from harness.audit.evidence import clear
from harness.audit.truth_sets import TruthSet
from harness.credit.table import TurnTable
from harness.reporting.credit_view import audit_text
from harness.reporting.credit_view.audit_text import number
from harness.reporting.credit_view.compare import Choice, Credit
from harness.reporting.credit_view.figures import four_digits
from harness.reporting.credit_view.page import PAGE, TRUTH, contents
from harness.reporting.credit_view.recordings import RecordedRollouts
from harness.types.rollout import Completion, Rollout, Turn

MOST_ROLLOUTS: Final = 128
"""Rollouts that are shown turn by turn; the figures are of all."""
_FEEDBACK: Final = {
    (True, False): Feedback.OK,
    (True, True): Feedback.FAILED,
    (False, False): Feedback.INADMISSIBLE,
    (False, True): Feedback.MALFORMED,
}
"""By `valid` and `failed`; that an action had no effect is not in the table."""


def render(truth_set: TruthSet, agreement: Agreement, results: Sequence[Credit]) -> str:
    """Return the page of a truth set, of the methods' figures, and of their credit on its turns."""
    truth, title = truth_set.truth, audit_text.title(truth_set)
    measured = Credit(Choice(TRUTH, TRUTH, asdict(truth.options)), truth.advantage)
    rollouts = _rollouts(truth_set)[: _most(truth.turns)]
    rows = sum(len(rollout.turns) for rollout in rollouts)
    columns = {name: column for name, column in vars(truth.turns).items() if column is not None}
    table = TurnTable(**{name: column[:rows] for name, column in columns.items()})
    cut = [
        replace(one, advantage=one.advantage[:rows])
        for one in (measured, *results)
        if one.advantage is not None
    ]
    missing = [one for one in results if one.advantage is None]
    data = contents(RecordedRollouts(rollouts, table, "", ""), [*cut, *missing], drawn=())
    for group in data["groups"]:
        own = np.flatnonzero(table.group == group["id"])
        group["truth"] = {
            "advantage": [four_digits(x) for x in truth.advantage[own]],
            "error": [four_digits(x) for x in truth.error[own]],
            "clear": clear(truth)[own].tolist(),
        }
    shown, played = len(rollouts), len(truth.turns.starts)
    held = (
        "A truth set holds each turn's action and what followed; the task's words, the first "
        "observation, prompts and answers of a model it does not hold."
    )
    held += f" The first {shown} of {played} rollouts are shown." if shown < played else ""
    return PAGE.render(
        title=f"Audit of credit: {title}",
        lead=audit_text.summary(truth_set, agreement).removeprefix(f"{title}; "),
        audit={
            "figures": [name.replace("_", " ") for name in NAMES],
            "rows": [{"name": name, "cells": cells} for name, cells in _cells(agreement)],
            "notes": [*audit_text.LEGEND.splitlines(), held],
        },
        data=data,
    )


def _cells(agreement: Agreement) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield the name and the cells of each method, of the ceiling, and of what bears them."""
    for name, figures in agreement.figures.items():
        own = [figures[title] for title in NAMES]
        ends = [tuple(map(number, one.interval)) if np.isfinite(one.value) else () for one in own]
        texts = [f"({', '.join(pair)})" if pair else "" for pair in ends]
        yield name, [(number(one.value), text) for one, text in zip(own, texts, strict=True)]
    yield "ceiling", [(number(agreement.ceilings.get(title, np.nan)), "") for title in NAMES]
    for name, known in audit_text.counts(agreement).items():
        yield name, [(f"{known[title]:,}", "") for title in NAMES]


def _most(turns: TurnTable) -> int:
    """Return how many rollouts are shown: whole groups where they do not exceed the limit."""
    groups = turns.group[turns.starts]
    if len(groups) <= MOST_ROLLOUTS:
        return len(groups)
    begins = np.flatnonzero(np.diff(groups, prepend=-1))
    whole = begins[begins <= MOST_ROLLOUTS]
    return int(whole[-1]) or MOST_ROLLOUTS


def _rollouts(truth_set: TruthSet) -> list[Rollout]:
    """Return the rollouts of a truth set, with what it holds of their texts."""
    turns = truth_set.truth.turns
    groups = np.unique(turns.group).tolist()
    tasks = dict(zip(groups, truth_set.tasks, strict=False))
    members: dict[int, int] = {}
    found = []
    for start, end in zip(turns.starts, [*turns.starts[1:], len(turns)], strict=True):
        group = int(turns.group[start])
        member = members[group] = members.get(group, -1) + 1
        rollout = Rollout(tasks.get(group, ""), "", group, member, 0)
        rollout.turns, seen = [], ""
        for row in range(start, end):
            rollout.turns.append(_turn(turns, row, seen))
            seen = rollout.turns[-1].next_observation
        rollout.success = bool(turns.success[start])
        found.append(rollout)
    return found


def _turn(turns: TurnTable, row: int, seen: str) -> Turn:
    action, _, outcome = turns.text[row].partition(" || ")
    return Turn(
        observation=seen or "(a truth set does not hold what is seen first)",
        state_key=turns.state_key[row],
        completion=Completion(action),
        action=action,
        action_key=turns.action_key[row],
        feedback=_FEEDBACK[bool(turns.valid[row]), bool(turns.failed[row])].value,
        reward=float(turns.reward[row]),
        next_observation=outcome,
        next_state_key=turns.next_state_key[row],
        progress=0.0,
    )
