"""The others in an episode: a partner, who acts for the other seat, and a judge, who rates both."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from agentgyms.sotopia.dialogue import Act, Dialogue, Rules
from agentgyms.sotopia.profiles import Encounter

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
class Spent:
    """What models took for something.

    Attributes:
        prompt: Tokens read.
        response: Tokens written.
        calls: Answers.
        cost: In the currency of the prices that were given; nan where there are none.
    """

    prompt: int = 0
    response: int = 0
    calls: int = 0
    cost: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        """Return the sum."""
        return Spent(
            self.prompt + other.prompt,
            self.response + other.response,
            self.calls + other.calls,
            self.cost + other.cost,
        )


@dataclass(frozen=True, slots=True)
class Reply:
    """What a partner does.

    Attributes:
        act: Its act.
        malformed: A model's answers were no act, repair included, so that it does nothing.
        spent: What the answer took.
    """

    act: Act
    malformed: bool = False
    spent: Spent = Spent()


@dataclass(frozen=True, slots=True)
class Rating:
    """How a judge rates one person.

    Attributes:
        scores: By dimension, every one of `RANGES` and within it.
        reasons: By dimension; may be missing.
    """

    scores: Mapping[str, int]
    reasons: Mapping[str, str]

    @property
    def overall(self) -> float:
        """The plain mean of the seven scores, as in the benchmark (at most 40/7)."""
        return math.fsum(self.scores.values()) / len(RANGES)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a judge says of a dialogue that is over.

    Attributes:
        ratings: Of seat 0 and seat 1; None if the judge gave none that can be used: unrated.
        reason: Why there is none, in one line.
        spent: What the answers took.
    """

    ratings: tuple[Rating, Rating] | None
    reason: str = ""
    spent: Spent = Spent()


class Partner(Protocol):
    """Acts for the seat that is not the learner's."""

    @property
    def identity(self) -> str:
        """Who it is, as results tell it: `scripted-v1`, or a model's name."""
        ...

    def reply(
        self, encounter: Encounter, rules: Rules, dialogue: Dialogue, seat: int, seed: int
    ) -> Reply:
        """Return what it does next; a function of the arguments alone, as far as it can be.

        Args:
            encounter: Who meets whom. `encounter.seat` is the learner's.
            rules: Of the dialogue.
            dialogue: So far. In simultaneous order the learner's act of this turn is not in it.
            seat: Its own.
            seed: Of the episode.

        Raises:
            EnvUnavailable: A model gave no answer; asking again is safe.
        """
        ...


class Judge(Protocol):
    """Rates dialogues that are over."""

    @property
    def identity(self) -> str:
        """Who it is, as results tell it: `programmatic-v1`, or a model's name."""
        ...

    def rate(self, encounter: Encounter, rules: Rules, dialogue: Dialogue, seed: int) -> Verdict:
        """Return the verdict; a judge that fails returns one without ratings."""
        ...
