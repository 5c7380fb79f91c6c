"""Price bargaining: seat 0 buys what seat 1 sells."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Final

from agentgyms.core.randomness import Chance
from agentgyms.envs.sotopia.generated.negotiation import Negotiation
from agentgyms.envs.sotopia.generated.words import with_article, word_list, words_of

UNIT: Final = 5
"""Sampled prices and prices that scripted people propose are multiples of it."""

_PRICE: Final = re.compile(r"\$?\s*(\d{1,6})(?:\.00?)?(?:\s*(?:\$|dollars?))?", re.I)
_HIGHEST: Final = 200


@dataclass(frozen=True, slots=True)
class Bargaining(Negotiation[int]):
    """A thing for a price.

    Goal of the buyer: 10 (limit - price) / (limit - target); of the seller:
    10 (price - limit) / (target - limit); rounded half up, cut to [0, 10], 0 without a deal. At its
    limit a deal is worth nothing to a seat. `listed` is the advertised price.
    """

    item: str
    listed: int
    targets: tuple[int, int]
    limits: tuple[int, int]
    reasons: tuple[str, str]

    @property
    def signature(self) -> tuple[object, ...]:
        """The private numbers; they decide the split of a game."""
        return (self.targets, self.limits)

    @property
    def text(self) -> str:
        """The situation, which both seats see."""
        return (
            f"One sells a used {self.item}, listed at {self.listed} dollars; the other one may buy"
            f' it. Talk is free, only acts bind: "act: offer {self.example}" names a price,'
            ' "act: accept" agrees to the other\'s offer: a deal, "act: reject" turns it down.'
        )

    @property
    def example(self) -> str:
        """An example price, the same in all games."""
        return "80"

    @property
    def step(self) -> int:
        """The unit of prices."""
        return UNIT

    def goal(self, seat: int) -> str:
        """Return a seat's goal with its private numbers."""
        target, limit, reason = self.targets[seat], self.limits[seat], self.reasons[seat]
        what, over = (f"Buy the {self.item} cheaply", "or more")
        if seat:
            what, over = (f"Sell the {self.item} dearly", "or less")
        return (
            f"{what}. <extra_info>Your target is {target}. At {limit} {over} the deal is worth"
            f" nothing to you. Your reason: {with_article(reason)}.</extra_info>"
        )

    def parse_offer(self, seat: int, text: str) -> int | None:
        """Return the price, a whole number of dollars; None if the text is not a price."""
        found = _PRICE.fullmatch(text.strip())
        return int(found[1]) if found else None

    def format_offer(self, seat: int, outcome: int) -> str:
        """Return the price as text."""
        return str(outcome)

    def outcomes(self) -> Sequence[int]:
        """Return the multiples of the unit."""
        return _prices()

    def gain(self, seat: int, outcome: int) -> int:
        """Return the difference between a price and the seat's limit, positive if better."""
        return outcome - self.limits[1] if seat else self.limits[0] - outcome

    def full_gain(self, seat: int) -> int:
        """Return the gain at the target."""
        return self.gain(seat, self.targets[seat])

    def aspiration(self, seat: int) -> int:
        """Return the gain at the target."""
        return self.full_gain(seat)

    def reservation(self, seat: int) -> int:
        """Return 0: the gain at the limit."""
        return 0

    def propose(self, seat: int, demand: Fraction | int, theirs: int | None) -> int:
        """Return the price best for the other seat that gives at least the demanded gain."""
        good = [price for price in _prices() if self.gain(seat, price) >= demand]
        return min(good, key=lambda price: self.gain(seat, price)) if good else self.targets[seat]

    def facts(self, seat: int) -> tuple[str, ...]:
        """Return the seat's reason."""
        return (self.reasons[seat],)

    def answer(self, seat: int, question: str) -> str:
        """Return the reason, the item's condition, or a refusal to tell limits."""
        words = set(words_of(question))
        if words & {"why", "reason"}:
            return f"It is because of {with_article(self.reasons[seat])}."
        if words & {"limit", "lowest", "highest", "minimum", "maximum", "target", "budget"}:
            return "I would rather not say. Make me an offer."
        if words & {"condition", "old", "new", "work", "works", "broken"}:
            return f"The {self.item} is in good order." if seat else "I have not seen it yet."
        return "Let us talk about the price."


@cache
def _prices() -> tuple[int, ...]:
    return tuple(range(UNIT, _HIGHEST + 1, UNIT))


def draw(chance: Chance) -> Bargaining:
    """Return a game in which the seller's limit is below the buyer's.

    The distance between the limits is 30 to 60. A target is up to 0.4 of it inside or outside the
    other seat's limit. Outside, insisting on it never leads to a deal, but a price at the other
    seat's limit is always worth at least 7.
    """
    low, room = UNIT * chance.between(6, 20), UNIT * chance.between(6, 12)
    reach = 2 * room // (5 * UNIT)
    high = low + room
    targets = (
        low + UNIT * chance.between(-reach, reach),
        high + UNIT * chance.between(-reach, reach),
    )
    return Bargaining(
        item=chance.pick(word_list("bargaining", "items")),
        listed=max(high, targets[1]) + UNIT * chance.between(0, 3),
        targets=targets,
        limits=(high, low),
        reasons=(
            chance.pick(word_list("bargaining", "buyer_reasons")),
            chance.pick(word_list("bargaining", "seller_reasons")),
        ),
    )
