"""The verdict of one check, and how a check says that it cannot run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

QUESTIONS: Final = {
    "contract": "Does it keep the contract of environments?",
    "expert": "Does the expert reach the maximum?",
    "floor": "Is play without thought far below the expert?",
    "replay": "Does the same episode come again?",
    "leaks": "Is the answer hidden from the agent?",
    "forgery": "Are forged actions worth nothing?",
    "learning": "Does a small learner get better by the reward?",
}
"""The checks by name, and what each asks."""

Status = Literal["passed", "failed", "not run"]


class Verdict(NamedTuple):
    """The verdict of one check: its finding, expectation and advice in words, and its figures.

    `advice` is "" if the check passed. `figures` are JSON-plain.
    """

    status: Status
    found: str
    expected: str
    advice: str = ""
    figures: Mapping[str, Any] = {}


class NotRun(Exception):
    """A check cannot run; the text says why."""


def verdict(
    passed: bool, found: str, expected: str, advice: str, figures: Mapping[str, Any] | None = None
) -> Verdict:
    """Return the verdict of a check that ran; `advice` is kept only if it failed."""
    status: Status = "passed" if passed else "failed"
    return Verdict(status, found, expected, "" if passed else advice, figures or {})
