"""Floor plans of generated rooms: receptacles and their locations, without objects."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

from agentgyms.core.randomness import Chance
from agentgyms.envs.alfworld.generated.catalogue import ROOMS, Room

SIZES: Final = {"small": (5, 7), "large": (16, 20)}
"""Minimum and maximum number of receptacles by size of room."""

NUM_SEEN: Final = 16
NUM_UNSEEN: Final = 6

_MOST_COPIES: Final = 6
_SHARED_PLACE: Final = 4
"""In large rooms, one in this many pieces shares the location of the previous one of its kind."""


@dataclass(frozen=True, slots=True)
class FloorPlan:
    """One room; its number is unique among the plans of one size.

    `furniture` has the types of its receptacles, sorted, with repetitions, and `places` the
    location number of each.
    """

    number: int
    room: Room
    furniture: tuple[str, ...]
    places: tuple[int, ...]


@lru_cache(maxsize=4)
def floor_plans(size: str, *, seen: bool) -> tuple[FloorPlan, ...]:
    """Return the plans of the training rooms, or of the other rooms, which share no plan with them.

    No two plans of a kind have the same furniture.
    """
    plans = []
    for first, room in enumerate(ROOMS):
        for i, furniture in enumerate(_furnishings(size, room)):
            if (i < NUM_SEEN) == seen:
                number = 100 * first + i
                plans.append(FloorPlan(number, room, furniture, _places(size, number, furniture)))
    return tuple(plans)


def _furnishings(size: str, room: Room) -> list[tuple[str, ...]]:
    chance = Chance("furniture", size, room.name)
    found: dict[tuple[str, ...], None] = {}
    while len(found) < NUM_SEEN + NUM_UNSEEN:
        count = chance.between(*SIZES[size])
        extra = len(room.sometimes) if size == "large" else count - len(room.always)
        furniture = [*room.always, *chance.sample(room.sometimes, extra - (size == "large"))]
        while len(furniture) < count:
            another = chance.pick(room.repeated)
            if furniture.count(another) < _MOST_COPIES:
                furniture.append(another)
        found[tuple(sorted(furniture))] = None
    return list(found)


def _places(size: str, number: int, furniture: tuple[str, ...]) -> tuple[int, ...]:
    """Return a location for each piece; in large rooms drawers and the like may share one."""
    chance = Chance("places", size, number)
    places = [1]
    for before, piece in pairwise(furniture):
        shared = size == "large" and before == piece and not chance.below(_SHARED_PLACE)
        places.append(places[-1] if shared else places[-1] + 1)
    return tuple(places)
