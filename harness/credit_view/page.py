"""One HTML file that needs nothing else: the rollouts, their credit, and the script that draws."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from harness.credit.returns import episode_returns
from harness.credit_view.comparing import Credit, written
from harness.credit_view.figures import Part, Pictures, first_of, parts, short
from harness.credit_view.recordings import Recorded
from harness.pages import build, safe_json, safe_text
from harness.rollout import Rollout

FILES: Final = Path(__file__).parent / "page"
SCRIPTS: Final = (
    "credit.js",
    "turns.js",
    "anchors.js",
    "graph.js",
    "matrix.js",
    "main.js",
)
TITLE: Final = "Credit, turn by turn"
_TEXT_BYTES: Final = 2_000_000
"""What all texts of a page take together, about."""
_LEAST_TEXT, _MOST_TEXT = 60, 4000
"""Bytes that a text may take in any case, and at most."""

_MOST_TITLE: Final = 400
"""Characters of a goal or a task's name."""


def render(recorded: Recorded, results: Sequence[Credit]) -> str:
    """Return the page: rollouts, the credit of each method, and what ECPO, SALT and SCPO saw.

    Texts are cut so that the page stays small, and can never be read as markup or script.

    Args:
        recorded: The rollouts.
        results: What `compare` gave for their table.
    """
    parts = {
        "title": TITLE,
        "lead": safe_text(_lead(recorded)),
        "json": safe_json(contents(recorded, results)),
    }
    return build(FILES, SCRIPTS, parts)


def _lead(recorded: Recorded) -> str:
    return f"{recorded.source}: {recorded.counts}. Rewards: {recorded.reward}."


def contents(recorded: Recorded, results: Sequence[Credit]) -> dict[str, Any]:
    """Return what the page's script reads."""
    texts = _Texts(recorded.rollouts)
    observations = [turn.observation for rollout in recorded.rollouts for turn in rollout.turns]
    pictures = Pictures(recorded.turns, results, observations, texts.number)
    scpo = first_of(results, "scpo")
    return {
        "methods": [_method(credit) for credit in results],
        "groups": [
            {**_group(recorded, results, part, texts), **pictures.of(part)}
            for part in parts(recorded.turns)
        ],
        "texts": texts.kept,
        "scorer": written(scpo.choice.settings["scorer"]) if scpo else "",
    }


def _method(credit: Credit) -> dict[str, Any]:
    choice = credit.choice
    return {
        "name": choice.name,
        "estimator": choice.estimator,
        "reference": choice.reference,
        "aliases": list(choice.aliases),
        "settings": ", ".join(f"{k} {written(v)}" for k, v in choice.settings.items()),
        "note": choice.note,
        "missing": list(credit.missing),
    }


def _group(
    recorded: Recorded, results: Sequence[Credit], part: Part, texts: _Texts
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
                "return": short(value),
                "start": int(start),
                "length": len(rollout.turns),
            }
            for rollout, value, start in zip(rollouts, returns, starts[:-1], strict=True)
        ],
        "action": [texts.number(turn.action) for turn in taken],
        "observation": [texts.number(turn.observation) for turn in taken],
        "outcome": [texts.number(turn.next_observation) for turn in taken],
        "feedback": [str(turn.feedback) for turn in taken],
        "reward": [short(x) for x in recorded.turns.reward[part.rows]],
        "credit": {
            i: [short(x) for x in credit.advantage[part.rows]]
            for i, credit in enumerate(results)
            if credit.advantage is not None
        },
    }


class _Texts:
    """The texts of a page, each once, and cut so that all of them fit.

    Attributes:
        kept: By their numbers.
    """

    def __init__(self, rollouts: Sequence[Rollout]) -> None:
        distinct = {
            text
            for rollout in rollouts
            for turn in rollout.turns
            for text in (turn.action, turn.observation, turn.next_observation)
        }
        fair = _TEXT_BYTES // max(1, len(distinct))
        self._limit = min(_MOST_TEXT, max(_LEAST_TEXT, fair))
        self._numbers: dict[str, int] = {}
        self.kept: list[str] = []

    def number(self, text: str) -> int:
        """Return the number of a text, which is kept from now on."""
        if text not in self._numbers:
            self._numbers[text] = len(self.kept)
            self.kept.append(self._cut(text))
        return self._numbers[text]

    def _cut(self, text: str) -> str:
        coded = text.encode("utf-8", "replace")
        if len(coded) <= self._limit:
            return coded.decode("utf-8")
        return coded[: self._limit].decode("utf-8", "ignore") + "…"
