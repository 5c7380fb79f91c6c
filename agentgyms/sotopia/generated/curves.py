"""How a scripted person's demands fall with time."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from agentgyms.chance import Chance
from agentgyms.sotopia.dialogue import Rules
from agentgyms.sotopia.generated.acts import num_turns

CURVES: Final = ("boulware", "linear", "conceder")
_LAST_TURNS: Final = 3


@dataclass(frozen=True, slots=True)
class Temper:
    """What the seed decides about a scripted person.

    Attributes:
        curve: One of `CURVES` (Faratin, Sierra and Jennings 1998, time-dependent tactics).
        duration: Own turns until the reservation is asked for.
        patience: Turns of the other one without progress after which the person leaves.
    """

    curve: str
    duration: int
    patience: int

    def conceded(self, turn: int) -> Fraction:
        """Return the share of the way from aim to reservation that is gone in an own turn.

        With x = min(1, turn / duration), turns counted from 0: boulware x², linear x,
        conceder 1 - (1 - x)².
        """
        x = min(Fraction(1), Fraction(turn, self.duration))
        if self.curve == "boulware":
            return x * x
        return x if self.curve == "linear" else 1 - (1 - x) ** 2


def draw_temper(name: str, rules: Rules, seat: int, seed: int) -> Temper:
    """Return the temper of a person; the duration leaves turns over to agree in.

    Args:
        name: Of the combination.
        rules: Of the dialogue.
        seat: The person's.
        seed: Of the episode.
    """
    chance = Chance("scripted-v1", name, seat, seed)
    curve = chance.pick(CURVES)
    longest = max(1, num_turns(rules, seat) - _LAST_TURNS)
    return Temper(curve, min(longest, chance.between(4, 6)), chance.between(4, 5))
