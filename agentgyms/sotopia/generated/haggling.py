"""What games have in common in which offers are made: the table, the scores, what can be done."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Generic, TypeVar

from agentgyms.sotopia.dialogue import Act, Dialogue, Kind, Turn
from agentgyms.sotopia.generated.acts import Verb, commitment, verb_of

Outcome = TypeVar("Outcome")
"""A way to settle things, the same whoever proposes it."""

_NUM_SUGGESTED: Final = 4
_FULL: Final = 10


@dataclass(frozen=True, slots=True)
class Table(Generic[Outcome]):
    """What lies on the table.

    Attributes:
        standing: The offer of each seat that stands.
        made: All offers of each seat, in order.
        deal: What was agreed, or None.
    """

    standing: tuple[Outcome | None, Outcome | None]
    made: tuple[tuple[Outcome, ...], tuple[Outcome, ...]]
    deal: Outcome | None = None


class Haggling(ABC, Generic[Outcome]):
    """A game of offers.

    An offer stands until its maker makes another or leaves, or the other one rejects it. Accepting
    takes the other one's standing offer: a deal, which nothing changes any more. Where both act at
    once, both meet what stood before the turn; of two acceptances that of seat 0 counts.
    """

    @property
    @abstractmethod
    def example(self) -> str:
        """An offer's text that tells nothing of anybody's numbers."""

    @property
    @abstractmethod
    def step(self) -> int:
        """The smallest difference in gain that people talk about."""

    @abstractmethod
    def read(self, seat: int, text: str) -> Outcome | None:
        """Return what a seat proposes with the text behind `offer`, None if it is no offer."""

    @abstractmethod
    def tell(self, seat: int, outcome: Outcome) -> str:
        """Return the text by which a seat proposes an outcome, behind `offer`."""

    @abstractmethod
    def outcomes(self) -> Sequence[Outcome]:
        """Return the outcomes that scripted people propose."""

    @abstractmethod
    def gain(self, seat: int, outcome: Outcome) -> int:
        """Return what a seat gains; negative is worse than no deal can be."""

    @abstractmethod
    def full(self, seat: int) -> int:
        """Return the gain with which a seat's goal is reached in full."""

    @abstractmethod
    def aim(self, seat: int) -> int:
        """Return the gain that a seat asks for first."""

    @abstractmethod
    def least(self, seat: int) -> int:
        """Return the gain below which a deal is worth nothing to a seat: its reservation."""

    @abstractmethod
    def ask(self, seat: int, demand: Fraction | int, theirs: Outcome | None) -> Outcome:
        """Return what a seat proposes that demands so much, given the other one's last offer.

        It depends on the seat's own numbers and on what is public.
        """

    @abstractmethod
    def facts(self, seat: int) -> tuple[str, ...]:
        """Return words that tell what only a seat knows at first."""

    @abstractmethod
    def answer(self, seat: int, question: str) -> str:
        """Return what the seat's person answers to a question."""

    def table(self, dialogue: Dialogue) -> Table[Outcome]:
        """Return what lies on the table after a dialogue."""
        standing: list[Outcome | None] = [None, None]
        made: tuple[list[Outcome], list[Outcome]] = ([], [])
        for turn in dialogue:
            deal = _accepted(turn, standing)
            if deal is not None:
                return Table((standing[0], standing[1]), (tuple(made[0]), tuple(made[1])), deal)
            _lay(turn, standing, made, self.read)
        return Table((standing[0], standing[1]), (tuple(made[0]), tuple(made[1])))

    def goal_score(self, dialogue: Dialogue, seat: int) -> int:
        """Return the worth of the deal; 0 without one."""
        deal = self.table(dialogue).deal
        return 0 if deal is None else self.worth(seat, deal)

    def worth(self, seat: int, outcome: Outcome) -> int:
        """Return 10 gain / full gain, rounded half up, 10 at most; 0 below the reservation."""
        if self.gain(seat, outcome) < self.least(seat):
            return 0
        return min(_FULL, max(0, _rounded(_FULL * self.gain(seat, outcome), self.full(seat))))

    def material(self, dialogue: Dialogue, seat: int) -> int:
        """Return 5 gain / full gain, rounded half up and cut to [-5, 5]; 0 without a deal.

        Of a deal below the reservation what counts as gain is the negative difference from it.
        """
        deal = self.table(dialogue).deal
        if deal is None:
            return 0
        gain, least = self.gain(seat, deal), self.least(seat)
        counted = gain if gain >= least else gain - least
        return min(5, max(-5, _rounded(5 * counted, self.full(seat))))

    def settled(self, dialogue: Dialogue) -> bool:
        """Return whether there is a deal."""
        return self.table(dialogue).deal is not None

    def progress(self, dialogue: Dialogue, seat: int) -> float:
        """Return 1 with a deal; before, a third for each seat that has made an offer."""
        table = self.table(dialogue)
        return 1.0 if table.deal is not None else sum(map(bool, table.made)) / 3

    def suggestions(self, dialogue: Dialogue, seat: int) -> tuple[str, ...]:
        """Return to accept, to reject, and a few offers from the seat's last towards the other's.

        After a deal there is nothing to do but to leave.
        """
        table = self.table(dialogue)
        if table.deal is not None:
            return ("leave",)
        theirs = table.standing[1 - seat]
        answers = ("act: accept", "act: reject") if theirs is not None else ()
        offers = dict.fromkeys(
            f"act: offer {self.tell(seat, self.ask(seat, demand, theirs))}"
            for demand in self._demands(table, seat)
        )
        return (*answers, *offers)

    def _demands(self, table: Table[Outcome], seat: int) -> list[Fraction]:
        own, theirs = table.made[seat], table.standing[1 - seat]
        least = max(1, self.least(seat))
        high = max(least, self.gain(seat, own[-1])) if own else self.aim(seat)
        low = least if theirs is None else max(least, self.gain(seat, theirs))
        steps = _NUM_SUGGESTED - 1
        return [high + Fraction(min(0, low - high) * i, steps) for i in range(_NUM_SUGGESTED)]

    def objection(self, dialogue: Dialogue, seat: int, act: Act) -> str:
        """Return why an act that reads like a commitment is none now, in one line; else ""."""
        verb, bound, table = verb_of(act), commitment(act), self.table(dialogue)
        if verb is None:
            return ""
        if verb is Verb.NAME:
            return "nobody is to be named here: offer, accept or reject"
        if table.deal is not None:
            return "there is a deal, and nothing changes it any more"
        if verb is Verb.OFFER:
            wrong = bound is None or self.read(seat, bound.rest) is None
            return f'no offer: expected one like "act: offer {self.example}"' if wrong else ""
        if bound is None:
            return f'to {verb} write "act: {verb}" and nothing else'
        none = table.standing[1 - seat] is None
        return f"there is no offer of the other one's to {verb}" if none else ""


def _rounded(numerator: int, denominator: int) -> int:
    return (2 * numerator + denominator) // (2 * denominator)


def _accepted(turn: Turn, standing: Sequence[Outcome | None]) -> Outcome | None:
    for seat, act in turn:
        bound = commitment(act)
        if bound and bound.verb is Verb.ACCEPT and standing[1 - seat] is not None:
            return standing[1 - seat]
    return None


def _lay(
    turn: Turn,
    standing: list[Outcome | None],
    made: tuple[list[Outcome], list[Outcome]],
    read: Callable[[int, str], Outcome | None],
) -> None:
    for seat, act in turn:
        bound = commitment(act)
        if act.kind is Kind.LEAVE:
            standing[seat] = None
        elif bound and bound.verb is Verb.REJECT:
            standing[1 - seat] = None
    for seat, act in turn:
        bound = commitment(act)
        outcome = read(seat, bound.rest) if bound and bound.verb is Verb.OFFER else None
        if outcome is not None:
            standing[seat] = outcome
            made[seat].append(outcome)
