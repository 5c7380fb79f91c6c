"""The numbered things of a problem, with its facts as sets of numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from agentgyms.envs.alfworld.game import Layout
from agentgyms.envs.alfworld.problem import Problem

_KNIVES: Final = frozenset({"knifetype", "butterknifetype"})


class House:
    """The numbered things of a problem, with its facts as sets of numbers."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        location = dict(problem.pairs("receptacleatlocation"))
        agents = [place for _, place in problem.pairs("atlocation")]
        if len(agents) != 1 or not location:
            raise ValueError(f"it has {len(agents)} agents and {len(location)} receptacles")
        places = sorted({agents[0], *location.values()})
        self.places = {key: p for p, key in enumerate(places)}
        self.receptacles = {key: r for r, key in enumerate(sorted(location))}
        self.location_of = tuple(self.places[location[key]] for key in self.receptacles)
        self.at = tuple(
            tuple(r for r, place in enumerate(self.location_of) if place == here)
            for here in range(len(places))
        )
        self.start = self.places[agents[0]]
        self.objects = {key: o for o, key in enumerate(sorted(self._met()))}
        self.pickable = self.having("pickupable")
        if self.having("toggleable") & self.pickable:
            raise ValueError("it has a lamp that can be carried")
        if "sinktype" in {kind for _, kind in problem.pairs("receptacletype")}:
            raise ValueError("it has a sink that is no basin; releases disagree whether it cleans")
        self.knives = self.objects_of(_KNIVES) & self.pickable
        self.sliceable = self.having("sliceable") if self.knives else 0
        self.stored = [
            (self.objects[key], self.receptacle(place))
            for key, place in problem.pairs("inreceptacle")
        ]
        self.fits = self._fits()
        self.layout = _layout(len(self.at), len(self.receptacles), len(self.objects))

    def _met(self) -> set[str]:
        """Return the ids of the objects that a player can see or act on."""
        sliceable = self.problem.members("sliceable")
        return {key for key, _ in self.problem.pairs("inreceptacle")} | {
            key
            for key, place in self.problem.pairs("objectatlocation")
            if key in sliceable and place in self.places
        }

    def receptacle(self, key: str) -> int:
        """Return the number of a receptacle."""
        try:
            return self.receptacles[key]
        except KeyError:
            raise ValueError(f"receptacle {key} is at no location") from None

    def receptacles_in(self, keys: Iterable[str]) -> int:
        """Return a set of receptacles."""
        return sum(1 << self.receptacle(key) for key in keys)

    def receptacles_of(self, types: frozenset[str]) -> int:
        """Return the receptacles of some types."""
        found = {key for key, kind in self.problem.pairs("receptacletype") if kind in types}
        return self.receptacles_in(found)

    def having(self, predicate: str) -> int:
        """Return the objects with a property."""
        known = self.objects
        return sum(1 << known[key] for key in self.problem.members(predicate) if key in known)

    def objects_of(self, types: frozenset[str]) -> int:
        """Return the objects of some types."""
        found = {key for key, kind in self.problem.pairs("objecttype") if kind in types}
        return sum(1 << self.objects[key] for key in found if key in self.objects)

    def _fits(self) -> tuple[int, ...]:
        room: dict[str, set[str]] = {}
        for place, kind in self.problem.pairs("cancontain"):
            room.setdefault(place, set()).add(kind)
        sets = {place: self.objects_of(frozenset(kinds)) for place, kinds in room.items()}
        fits = [0] * len(self.receptacles)
        for key, place in self.problem.pairs("receptacletype"):
            fits[self.receptacle(key)] |= sets.get(place, 0)
        return tuple(fits)

    def inside(self, objects: Iterable[int], receptacles: Iterable[int]) -> int:
        """Return the bits for each of the objects being in each of the receptacles."""
        row = sum(1 << r for r in receptacles)  # the bits of one object
        return sum(row << (self.layout.inside + o * len(self.receptacles)) for o in objects)

    def memorable(self) -> tuple[int, ...]:
        """Return for each receptacle the objects that can return beside it.

        Only a neighbour at the same location takes them there. Elsewhere, their having been in this
        receptacle never shows again, and so is no part of the state.
        """
        homes = [(self.pickable & fitting) for fitting in self.fits]
        for o, r in self.stored:
            homes[r] |= self.pickable & 1 << o
        memorable = []
        for r, place in enumerate(self.location_of):
            beside = 0
            for neighbour in self.at[place]:
                beside |= self.fits[neighbour] if neighbour != r else 0
            memorable.append(homes[r] & beside)
        return tuple(memorable)

    def initial(self) -> int:
        """Return the first state."""
        layout = self.layout
        state = 1 << self.start
        state |= self.receptacles_in(self.problem.members("opened")) << layout.opened
        state |= self.having("isclean") << layout.clean
        state |= self.having("ishot") << layout.hot
        state |= self.having("iscool") << layout.cool
        state |= self.having("istoggled") << layout.toggled
        state |= self.having("issliced") << layout.sliced
        for o, r in self.stored:
            state |= self.inside([o], [r])
        for key, place in self.problem.pairs("objectatlocation"):
            o, p = self.objects.get(key, -1), self.places.get(place, -1)
            if o >= 0 <= p and self.sliceable >> o & 1 and self.at[p]:
                state |= 1 << (layout.beside + o * len(self.at) + p)
        return state


def _layout(num_places: int, num_receptacles: int, num_objects: int) -> Layout:
    pairs = num_objects * num_receptacles
    ends, end = [], 0
    for size in (
        num_places,
        num_receptacles,
        *[num_objects] * 6,
        pairs,
        pairs,
        num_objects * num_places,
    ):
        end += size
        ends.append(end)
    return Layout(*ends)
