"""Common base of negotiation games: offers, scores and suggested actions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Generic, TypeVar

from agentgyms.envs.sotopia.dialogue import Act, Dialogue, Kind, Turn
from agentgyms.envs.sotopia.generated.acts import Verb, commitment, verb_of

Outcome = TypeVar("Outcome")
"""A possible agreement; it does not depend on who proposes it."""

_NUM_SUGGESTED: Final = 4
_FULL: Final = 10


@dataclass(frozen=True, slots=True)
class OfferState(Generic[Outcome]):
    """The standing offer and all offers of each seat after a dialogue, and the deal or None."""

    standing: tuple[Outcome | None, Outcome | None]
    offers: tuple[tuple[Outcome, ...], tuple[Outcome, ...]]
    deal: Outcome | None = None


class Negotiation(ABC, Generic[Outcome]):
    """A negotiation game of offers, acceptances and rejections.

    An offer stands until its seat makes another one or leaves, or the other seat rejects it.
    Accepting the other seat's standing offer makes a deal, which is final. In simultaneous turns
    both acts refer to the offers before the turn; of two acceptances that of seat 0 counts.
    """

    @property
    @abstractmethod
    def example(self) -> str:
        """An example offer that reveals no private numbers."""

    @property
    @abstractmethod
    def step(self) -> int:
        """The smallest difference in gain that counts as progress."""

    @abstractmethod
    def parse_offer(self, seat: int, text: str) -> Outcome | None:
        """Parse the text after `offer` by a seat; None if it is not an offer."""

    @abstractmethod
    def format_offer(self, seat: int, outcome: Outcome) -> str:
        """Return the text after `offer` with which a seat proposes an outcome."""

    @abstractmethod
    def outcomes(self) -> Sequence[Outcome]:
        """Return the outcomes that scripted people propose."""

    @abstractmethod
    def gain(self, seat: int, outcome: Outcome) -> int:
        """Return a seat's gain; negative is worse than no deal."""

    @abstractmethod
    def full_gain(self, seat: int) -> int:
        """Return the gain at which a seat's goal score is 10."""

    @abstractmethod
    def aspiration(self, seat: int) -> int:
        """Return the gain of a seat's first offer."""

    @abstractmethod
    def reservation(self, seat: int) -> int:
        """Return the reservation value: a deal with a lower gain is worth nothing to the seat."""

    @abstractmethod
    def propose(self, seat: int, demand: Fraction | int, theirs: Outcome | None) -> Outcome:
        """Return a seat's proposal with at least the demanded gain.

        It depends only on public numbers, the seat's numbers, and the other seat's last offer,
        `theirs`.
        """

    @abstractmethod
    def facts(self, seat: int) -> tuple[str, ...]:
        """Return words that reveal a seat's private knowledge."""

    @abstractmethod
    def answer(self, seat: int, question: str) -> str:
        """Return a seat's answer to a question."""

    def offer_state(self, dialogue: Dialogue) -> OfferState[Outcome]:
        """Return the offers after a dialogue."""
        standing: list[Outcome | None] = [None, None]
        offers: tuple[list[Outcome], list[Outcome]] = ([], [])
        for turn in dialogue:
            deal = _accepted(turn, standing)
            if deal is not None:
                return OfferState(
                    (standing[0], standing[1]), (tuple(offers[0]), tuple(offers[1])), deal
                )
            for seat, act in turn:
                bound = commitment(act)
                if act.kind is Kind.LEAVE:
                    standing[seat] = None
                elif bound and bound.verb is Verb.REJECT:
                    standing[1 - seat] = None
            for seat, act in turn:
                bound = commitment(act)
                outcome = (
                    self.parse_offer(seat, bound.rest)
                    if bound and bound.verb is Verb.OFFER
                    else None
                )
                if outcome is not None:
                    standing[seat] = outcome
                    offers[seat].append(outcome)
        return OfferState((standing[0], standing[1]), (tuple(offers[0]), tuple(offers[1])))

    def goal_score(self, dialogue: Dialogue, seat: int) -> int:
        """Return the worth of the deal; 0 without a deal."""
        deal = self.offer_state(dialogue).deal
        return 0 if deal is None else self.worth(seat, deal)

    def worth(self, seat: int, outcome: Outcome) -> int:
        """Return 10 gain / full gain, rounded half up, at most 10; 0 below the reservation."""
        if self.gain(seat, outcome) < self.reservation(seat):
            return 0
        return min(_FULL, max(0, _rounded(_FULL * self.gain(seat, outcome), self.full_gain(seat))))

    def material(self, dialogue: Dialogue, seat: int) -> int:
        """Return 5 gain / full gain, rounded half up and cut to [-5, 5]; 0 without a deal.

        Below the reservation value the gain counts as its (negative) difference from that value.
        """
        deal = self.offer_state(dialogue).deal
        if deal is None:
            return 0
        gain, least = self.gain(seat, deal), self.reservation(seat)
        counted = gain if gain >= least else gain - least
        return min(5, max(-5, _rounded(5 * counted, self.full_gain(seat))))

    def settled(self, dialogue: Dialogue) -> bool:
        """Return whether there is a deal."""
        return self.offer_state(dialogue).deal is not None

    def subgoals(self, dialogue: Dialogue, seat: int) -> dict[str, bool]:
        """Return whether each seat has made an offer, or needs no more, and whether they deal."""
        table = self.offer_state(dialogue)
        deal = table.deal is not None
        own, other = bool(table.offers[seat]), bool(table.offers[1 - seat])
        return {"own offer": own or deal, "other's offer": other or deal, "deal": deal}

    def suggestions(self, dialogue: Dialogue, seat: int) -> tuple[str, ...]:
        """Return `accept`, `reject` and offers towards the other's last; after a deal `leave`."""
        table = self.offer_state(dialogue)
        if table.deal is not None:
            return ("leave",)
        theirs = table.standing[1 - seat]
        answers = ("act: accept", "act: reject") if theirs is not None else ()
        offers = dict.fromkeys(
            f"act: offer {self.format_offer(seat, self.propose(seat, demand, theirs))}"
            for demand in self._demands(table, seat)
        )
        return (*answers, *offers)

    def _demands(self, table: OfferState[Outcome], seat: int) -> list[Fraction]:
        own, theirs = table.offers[seat], table.standing[1 - seat]
        least = max(1, self.reservation(seat))
        high = max(least, self.gain(seat, own[-1])) if own else self.aspiration(seat)
        low = least if theirs is None else max(least, self.gain(seat, theirs))
        steps = _NUM_SUGGESTED - 1
        return [high + Fraction(min(0, low - high) * i, steps) for i in range(_NUM_SUGGESTED)]

    def no_effect_reason(self, dialogue: Dialogue, seat: int, act: Act) -> str:
        """Return why an act that looks like a commitment has no effect now, else ""."""
        verb, bound, table = verb_of(act), commitment(act), self.offer_state(dialogue)
        if verb is None:
            return ""
        if verb is Verb.NAME:
            return "nobody is to be named here: offer, accept or reject"
        if table.deal is not None:
            return "there is a deal, and nothing changes it any more"
        if verb is Verb.OFFER:
            wrong = bound is None or self.parse_offer(seat, bound.rest) is None
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
