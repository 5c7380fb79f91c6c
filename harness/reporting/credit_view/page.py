"""The HTML page of the credit view: rollouts, their credit, and the figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from harness.credit.shared import episode_returns
from harness.reporting import pages
from harness.reporting.credit_view.compare import Credit, setting_text
from harness.reporting.credit_view.figures import (
    FigureData,
    GroupRows,
    first_result,
    four_digits,
    group_rows,
)
from harness.reporting.credit_view.recordings import RecordedRollouts
from harness.types.rollout import Rollout

PAGE: Final = pages.Page(
    Path(__file__).parent / "page",
    ("credit.js", "turns.js", "anchors.js", "graph.js", "matrix.js", "main.js"),
)
TRUTH: Final = "truth"
"""The estimator of measured advantages, in place of a method's."""
_TEXT_BYTES: Final = 2_000_000
"""Approximate maximum bytes of all texts of a page."""
_LEAST_TEXT, _MOST_TEXT = 60, 4000
"""Lower and upper end of the maximum bytes of one text."""
_MOST_TITLE: Final = 400
"""Maximum characters of a goal or a task's name."""


def render(recorded: RecordedRollouts, results: Sequence[Credit]) -> str:
    """Return the page of rollouts, credit and figures; its texts are shortened and escaped."""
    lead = f"{recorded.source}: {recorded.counts}. Rewards: {recorded.reward}."
    data = contents(recorded, results)
    return PAGE.render(title="Credit, turn by turn", lead=lead, audit=None, data=data)


def contents(
    recorded: RecordedRollouts, results: Sequence[Credit], drawn: Sequence[Credit] | None = None
) -> dict[str, Any]:
    """Return the data of the page's script; only the methods in `drawn` may have a figure."""
    texts, drawn = _Texts(recorded.rollouts), results if drawn is None else drawn
    observations = [turn.observation for rollout in recorded.rollouts for turn in rollout.turns]
    pictures = FigureData(recorded.turns, drawn, observations, texts.number)
    scpo = first_result(drawn, "scpo")
    return {
        "methods": [_method(credit) for credit in results],
        "groups": [
            {**_group(recorded, results, part, texts), **pictures.of(part)}
            for part in group_rows(recorded.turns)
        ],
        "texts": texts.kept,
        "scorer": setting_text(scpo.choice.settings["scorer"]) if scpo else "",
    }


def _method(credit: Credit) -> dict[str, Any]:
    choice = credit.choice
    return {
        "name": choice.name,
        "estimator": choice.estimator,
        "reference": choice.reference,
        "aliases": list(choice.aliases),
        "settings": ", ".join(f"{k} {setting_text(v)}" for k, v in choice.settings.items()),
        "note": choice.note,
        "missing": list(credit.missing),
        "truth": choice.estimator == TRUTH,
    }


def _group(
    recorded: RecordedRollouts, results: Sequence[Credit], part: GroupRows, texts: _Texts
) -> dict[str, Any]:
    rollouts = [recorded.rollouts[r] for r in part.rollouts]
    taken = [turn for rollout in rollouts for turn in rollout.turns]
    returns = episode_returns(recorded.turns)[part.rollouts]
    starts = np.cumsum([0, *(len(rollout.turns) for rollout in rollouts)])
    return {
        "id": part.group,
        "task": rollouts[0].task_id[:_MOST_TITLE],
        "goal": rollouts[0].goal[:_MOST_TITLE],
        "rollouts": [
            {
                "member": rollout.member,
                "success": rollout.success,
                "return": four_digits(value),
                "start": int(start),
                "length": len(rollout.turns),
            }
            for rollout, value, start in zip(rollouts, returns, starts[:-1], strict=True)
        ],
        "action": [texts.number(turn.action) for turn in taken],
        "observation": [texts.number(turn.observation) for turn in taken],
        "outcome": [texts.number(turn.next_observation) for turn in taken],
        "feedback": [str(turn.feedback) for turn in taken],
        "reward": [four_digits(x) for x in recorded.turns.reward[part.rows]],
        "credit": {
            i: [four_digits(x) for x in credit.advantage[part.rows]]
            for i, credit in enumerate(results)
            if credit.advantage is not None
        },
    }


class _Texts:
    """The texts of a page, each once, and shortened so that all of them fit."""

    def __init__(self, rollouts: Sequence[Rollout]) -> None:
        turns = [turn for rollout in rollouts for turn in rollout.turns]
        texts = ((turn.action, turn.observation, turn.next_observation) for turn in turns)
        distinct = {text for three in texts for text in three}
        fair = _TEXT_BYTES // max(1, len(distinct))
        self._limit = min(_MOST_TEXT, max(_LEAST_TEXT, fair))
        self._numbers: dict[str, int] = {}
        self.kept: list[str] = []

    def number(self, text: str) -> int:
        if text not in self._numbers:
            self._numbers[text] = len(self.kept)
            coded = text.encode("utf-8", "replace")
            cut = coded[: self._limit].decode("utf-8", "ignore")
            self.kept.append(cut + "…" * (len(coded) > self._limit))
        return self._numbers[text]
