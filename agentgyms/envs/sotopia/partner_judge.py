"""Interfaces of partners, which act for the other seat, and judges, which rate both seats."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from agentgyms.envs.sotopia.dialogue import Act, Dialogue, Rules
from agentgyms.envs.sotopia.profiles import Encounter
from agentgyms.models.usage import NO_USAGE, Usage

RANGES: Final[Mapping[str, tuple[int, int]]] = {
    "believability": (0, 10),
    "relationship": (-5, 5),
    "knowledge": (0, 10),
    "secret": (-10, 0),
    "social_rules": (-10, 0),
    "financial_and_material_benefits": (-5, 5),
    "goal": (0, 10),
}
"""The seven dimensions in the order of SOTOPIA's `SotopiaDimensions`: lowest and highest score."""


@dataclass(frozen=True, slots=True)
class PartnerReply:
    """A partner's act in one turn; `NOTHING` if it is malformed, the retry included."""

    act: Act
    malformed: bool = False
    usage: Usage = NO_USAGE


@dataclass(frozen=True, slots=True)
class Rating:
    """A judge's scores of one person for all of `RANGES`; reasons may be missing."""

    scores: Mapping[str, int]
    reasons: Mapping[str, str]

    @property
    def overall(self) -> float:
        """The mean of the seven scores, as in the benchmark (at most 40/7)."""
        return math.fsum(self.scores.values()) / len(RANGES)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The ratings of seat 0 and seat 1; None if unrated, for the reason in one line."""

    ratings: tuple[Rating, Rating] | None
    reason: str = ""
    usage: Usage = NO_USAGE


class Partner(Protocol):
    """Acts for the other seat, which is not the learner's."""

    @property
    def identity(self) -> str:
        """Name in results: `scripted-v1`, or a model's name."""

    def reply(
        self, encounter: Encounter, rules: Rules, dialogue: Dialogue, seat: int, seed: int
    ) -> PartnerReply:
        """Return the partner's next act; a function of the arguments, as far as models allow it.

        `encounter.seat` is the learner's seat, `seat` the partner's. In simultaneous order the
        dialogue lacks the learner's act of this turn. After an `EnvUnavailable` a retry is safe.
        """


class Judge(Protocol):
    """Rates finished dialogues."""

    @property
    def identity(self) -> str:
        """Name in results: `programmatic-v1`, or a model's name."""

    def rate(self, encounter: Encounter, rules: Rules, dialogue: Dialogue, seed: int) -> Verdict:
        """Return the verdict; a judge that fails returns one without ratings."""
