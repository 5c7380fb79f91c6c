"""Time-dependent concession strategies of scripted people."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from agentgyms.core.randomness import Chance
from agentgyms.envs.sotopia.dialogue import Rules
from agentgyms.envs.sotopia.generated.acts import num_turns

CURVES: Final = ("boulware", "linear", "conceder")
_LAST_TURNS: Final = 3


@dataclass(frozen=True, slots=True)
class ConcessionStrategy:
    """The strategy parameters of a scripted person, drawn with the seed.

    `curve` is one of `CURVES` (Faratin, Sierra and Jennings 1998, time-dependent tactics). The
    demand reaches the reservation value after `duration` turns of the person, who leaves after
    `max_stalls` turns of the other one without progress.
    """

    curve: str
    duration: int
    max_stalls: int

    def concession(self, turn: int) -> Fraction:
        """Return the fraction conceded from aspiration to reservation in a turn, in [0, 1].

        With x = min(1, turn / duration), the person's turns counted from 0: boulware x², linear x,
        conceder 1 - (1 - x)².
        """
        x = min(Fraction(1), Fraction(turn, self.duration))
        if self.curve == "boulware":
            return x * x
        return x if self.curve == "linear" else 1 - (1 - x) ** 2


def draw_strategy(name: str, rules: Rules, seat: int, seed: int) -> ConcessionStrategy:
    """Return a random strategy for a seat; the duration leaves turns for an agreement."""
    chance = Chance("scripted-v1", name, seat, seed)
    curve = chance.pick(CURVES)
    longest = max(1, num_turns(rules, seat) - _LAST_TURNS)
    return ConcessionStrategy(curve, min(longest, chance.between(4, 6)), chance.between(4, 5))
