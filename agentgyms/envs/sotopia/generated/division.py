"""Item division: two people divide items that they value differently."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Final

from agentgyms.core.randomness import Chance
from agentgyms.envs.sotopia.generated.negotiation import Negotiation
from agentgyms.envs.sotopia.generated.words import join_words, word_list, words_of

Share = tuple[int, ...]
"""Number of items of each kind for seat 0; seat 1 takes the rest."""

TOTAL: Final = 10
"""Points of all items together, for each seat."""

_PART: Final = re.compile(r"([a-z]+)\s*[=:]\s*(\d{1,3})\s*[,;]?\s*", re.I)
_NUM_KINDS: Final = 3
_WINNING_GAIN: Final = 7
_MAX_PER_KIND: Final = 3
_NUM_THINGS: Final = (5, 6)
_MAX_POINTS: Final = 4


@dataclass(frozen=True, slots=True)
class Division(Negotiation[Share]):
    """Items of three kinds; all items together are worth 10 points to each seat.

    Goal: the points of the seat's share; 0 below its minimum or without a deal. `points` has, for
    each seat, the points of one item of each kind.
    """

    kinds: tuple[str, ...]
    counts: tuple[int, ...]
    points: tuple[tuple[int, ...], tuple[int, ...]]
    minima: tuple[int, int]

    @property
    def signature(self) -> tuple[object, ...]:
        """The numbers that decide a game's split, whatever the order of kinds and seats."""
        return min(
            (
                tuple(sorted(zip(self.counts, self.points[one], self.points[other], strict=True))),
                self.minima[one],
                self.minima[other],
            )
            for one, other in ((0, 1), (1, 0))
        )

    @property
    def text(self) -> str:
        """The situation, which both seats see."""
        things = join_words(
            [f"{kind} {n}" for kind, n in zip(self.kinds, self.counts, strict=True)]
        )
        return (
            f"Two people share these out: {things}. Talk is free, only acts bind:"
            f' "act: offer {self.example}" proposes that you take these and the other one the rest,'
            ' "act: accept" agrees to the other\'s offer: a deal, "act: reject" turns it down.'
        )

    @property
    def example(self) -> str:
        """One of each kind."""
        return self.format_offer(0, tuple(min(1, n) for n in self.counts))

    @property
    def step(self) -> int:
        """One point."""
        return 1

    def goal(self, seat: int) -> str:
        """Return a seat's goal with its private numbers."""
        worth = join_words(
            [f"{kind} {n}" for kind, n in zip(self.kinds, self.points[seat], strict=True)]
        )
        return (
            f"Get as many points as you can. <extra_info>Points each: {worth}; all together"
            f" {TOTAL}. Less than {self.minima[seat]} is worth nothing to you.</extra_info>"
        )

    def parse_offer(self, seat: int, text: str) -> Share | None:
        """Parse a share such as `books=2 hats=1`; omitted kinds go to the other seat."""
        found = _PART.findall(text)
        if not found or _PART.sub("", text).strip():
            return None
        taken = {kind.lower(): int(count) for kind, count in found}
        if len(taken) < len(found) or not taken.keys() <= set(self.kinds):
            return None
        own = tuple(taken.get(kind, 0) for kind in self.kinds)
        if any(n > most for n, most in zip(own, self.counts, strict=True)):
            return None
        return self._rest(own) if seat else own

    def format_offer(self, seat: int, outcome: Share) -> str:
        """Return the seat's share as text, with all kinds."""
        own = self._rest(outcome) if seat else outcome
        return " ".join(f"{kind}={n}" for kind, n in zip(self.kinds, own, strict=True))

    def _rest(self, share: Share) -> Share:
        return tuple(most - n for n, most in zip(share, self.counts, strict=True))

    def outcomes(self) -> Sequence[Share]:
        """Return all shares."""
        return _shares(self.counts)

    def gain(self, seat: int, outcome: Share) -> int:
        """Return the points of the seat's share."""
        own = self._rest(outcome) if seat else outcome
        return sum(n * worth for n, worth in zip(own, self.points[seat], strict=True))

    def full_gain(self, seat: int) -> int:
        """Return the points of all items together."""
        return TOTAL

    def aspiration(self, seat: int) -> int:
        """Return the maximum points with one item left to the other seat."""
        return TOTAL - min(self.points[seat])

    def reservation(self, seat: int) -> int:
        """Return the seat's minimum."""
        return self.minima[seat]

    def propose(self, seat: int, demand: Fraction | int, theirs: Share | None) -> Share:
        """Return a share of `demand` points or more with the fewest items that the other wants."""
        good = [share for share in self.outcomes() if self.gain(seat, share) >= demand]
        wanted = theirs if theirs is not None else tuple(0 if seat == 0 else n for n in self.counts)

        def cost(share: Share) -> tuple[int, int, Share]:
            taken = sum(
                max(0, (mine - asked) if seat == 0 else (asked - mine))
                for mine, asked in zip(share, wanted, strict=True)
            )
            return (taken, self.gain(seat, share), share)

        return min(good, key=cost)

    def facts(self, seat: int) -> tuple[str, ...]:
        """Return the kind whose items are worth most to the seat."""
        worth = self.points[seat]
        return (self.kinds[worth.index(max(worth))],)

    def answer(self, seat: int, question: str) -> str:
        """Return the kind that the seat likes best, or a refusal to tell points."""
        asked = set(words_of(question))
        if asked & {"points", "minimum", "least", "limit"}:
            return "I would rather not say. Make me an offer."
        if asked & {"best", "most", "favourite", "favorite", "prefer", "like", "want", "need"}:
            return f"I like the {self.facts(seat)[0]} best."
        return "Let us talk about who takes what."


@cache
def _shares(counts: tuple[int, ...]) -> tuple[Share, ...]:
    return tuple(product(*(range(n + 1) for n in counts)))


@cache
def _valuations(counts: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    ranges = (range(TOTAL // n + 1) for n in counts)
    return tuple(
        worth
        for worth in product(*ranges)
        if sum(n * w for n, w in zip(counts, worth, strict=True)) == TOTAL
        and max(worth) <= _MAX_POINTS
    )


def draw(chance: Chance) -> Division:
    """Return a random game in which each seat can get 7 points while the other gets its minimum.

    The first offer of either seat is worth less than 7 points to the other one.
    """
    kinds = tuple(chance.sample(word_list("division", "kinds"), _NUM_KINDS))
    while True:
        counts = tuple(chance.between(1, _MAX_PER_KIND) for _ in kinds)
        if not _NUM_THINGS[0] <= sum(counts) <= _NUM_THINGS[1]:
            continue
        points = (chance.pick(_valuations(counts)), chance.pick(_valuations(counts)))
        game = Division(kinds, counts, points, (chance.between(3, 4), chance.between(3, 4)))
        if all(
            _opening_offer_gain(game, seat) < _WINNING_GAIN <= _best_gain(game, seat)
            for seat in (0, 1)
        ):
            return game


def _opening_offer_gain(game: Division, seat: int) -> int:
    return game.gain(seat, game.propose(1 - seat, game.aspiration(1 - seat), None))


def _best_gain(game: Division, seat: int) -> int:
    return max(
        game.gain(seat, share)
        for share in game.outcomes()
        if game.gain(1 - seat, share) >= game.minima[1 - seat]
    )
