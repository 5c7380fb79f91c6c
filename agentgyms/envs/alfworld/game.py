"""A game in the form of the engine: immutable, with numbered things; environments share it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from agentgyms.envs.alfworld.problem import Goal


class Wanted(NamedTuple):
    """One kind of literal of the goal: at least `need` of the facts in `bits` must hold."""

    bits: int
    need: int
    name: str  # of its atom, such as `in place`


@dataclass(frozen=True, slots=True)
class Aim:
    """The goal as bit masks: every part must hold in at least one of its ways.

    `total` is the number of literals that must hold together; `watched` are all bits that count.
    `names` are those of the literals, in the order of `holds`.
    """

    parts: tuple[tuple[tuple[Wanted, ...], ...], ...]
    total: int
    watched: int
    names: tuple[str, ...]

    def reached(self, state: int) -> int:
        """Return the number of goal literals that hold, for the best choice of objects."""
        return sum(self.holds(state))

    def holds(self, state: int) -> tuple[bool, ...]:
        """Return which goal literals hold, for the best choice of objects (the first of them)."""
        found: list[bool] = []
        for ways in self.parts:
            best, most = [False], -1  # of a part without a way
            for way in ways:
                hold = []
                for bits, need, _ in way:
                    count = (state & bits).bit_count()
                    hold += [count > i for i in range(need)]
                reached = sum(hold)
                if reached > most:
                    best, most = hold, reached
            found += best
        return tuple(found)


def aim_at(*parts: Iterable[Iterable[Wanted]]) -> Aim:
    """Return the aim that is reached when every part is, in one of its ways.

    The ways of one part want equally many literals.
    """
    ways = tuple(tuple(tuple(way) for way in part) for part in parts)
    watched = 0
    for wanted in (wanted for part in ways for way in part for wanted in way):
        watched |= wanted.bits
    names = [name for part in ways for name in (_atoms(part[0]) if part else ("impossible",))]
    return Aim(ways, len(names), watched, tuple(names))


def _atoms(way: Iterable[Wanted]) -> Iterator[str]:
    """Yield the names of a way's literals; those of one kind are numbered."""
    for _, need, name in way:
        yield from (f"{name} {i + 1}" for i in range(need)) if need > 1 else (name,)


class Layout(NamedTuple):
    """Offset of each kind of fact in the bits of a state.

    With R receptacles, O objects and L locations, a state has one bit per location for the agent's
    own, R bits `opened`, O bits each for `held` to `sliced`, O x R for `inside` (object o in
    receptacle r at o * R + r), O x R for `taken` and O x L for `beside`; `end` is their number.
    """

    opened: int
    held: int
    clean: int
    hot: int
    cool: int
    toggled: int
    sliced: int
    inside: int
    taken: int
    beside: int
    end: int


@dataclass(frozen=True, slots=True)
class Game:
    """A parsed game; receptacles, objects and locations are numbers in the order of their ids.

    A set of objects or receptacles is an integer, with bit i for number i. So is a state: the facts
    that can change, placed by `layout`. Only objects that can ever be met are numbered.
    """

    name: str
    goal: Goal
    sentence: str  # the same in words
    walkthrough: tuple[str, ...]  # commands that win, if the game came with them
    receptacles: tuple[str, ...]  # names such as `drawer 2`, as the text shows them
    location_of: tuple[int, ...]  # location of each receptacle
    at: tuple[tuple[int, ...], ...]  # receptacles of each location
    openable: int  # receptacles that open and close
    sinks: int  # receptacles that clean
    microwaves: int  # receptacles that heat
    fridges: int  # receptacles that cool
    objects: tuple[str, ...]  # names such as `mug 1`
    fits: tuple[int, ...]  # for each receptacle, the objects that may be put there
    pickable: int  # objects that can be held; `cleanable` to `sliceable` and `knives` likewise
    cleanable: int
    heatable: int
    coolable: int
    toggleable: int
    sliceable: int
    knives: int
    vessels: Mapping[int, str]  # objects with an inside, and the description of each
    targets: int  # objects of the type the goal asks for
    places: tuple[int, ...]  # receptacles of the type the goal asks for; none for `look`
    # For `look`, pairs of a lamp and the receptacle it stands on.
    lamps: tuple[tuple[int, int], ...]
    roads: Mapping[str, int]  # the `go to` commands, sorted, and the receptacle each leads to
    # For each location, the positions in `roads` that lead nowhere else, descending.
    blocked: tuple[tuple[int, ...], ...]
    # For each receptacle, the objects whose having been taken from it can show later.
    memorable: tuple[int, ...]
    initial: int
    layout: Layout
    aim: Aim
    salt: bytes  # digest of the game's identity and contents, a part of every state key


def members(bits: int) -> Iterator[int]:
    """Yield the numbers in a set, in ascending order."""
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


def listing(names: Iterable[str]) -> str:
    """Return `a mug 1, a cup 2, and a fork 1`, or `nothing`."""
    *first, last = [f"a {name}" for name in names] or ["nothing"]
    return f"{', '.join(first)}, and {last}" if first else last
