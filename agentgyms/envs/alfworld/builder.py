"""Builds a playable `Game` from the facts of a problem: numbers, names and bits."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

from agentgyms.envs.alfworld.game import Aim, Game, Wanted, aim_at, listing, members
from agentgyms.envs.alfworld.numbered_facts import House
from agentgyms.envs.alfworld.problem import Problem

_SINKS: Final = frozenset({"sinkbasintype"})
_MICROWAVES: Final = frozenset({"microwavetype"})
_FRIDGES: Final = frozenset({"fridgetype"})


class _Names(dict[str, str]):
    def __missing__(self, key: str) -> str:
        raise ValueError(f"the id {key!r:.80} does not name a kind of thing: expected KIND_bar_...")


def display_names(ids: Iterable[str]) -> dict[str, str]:
    """Return names such as `mug 1`; each kind is numbered downwards, its last id gets 1."""
    numbers: Counter[str] = Counter()
    names = _Names()
    for key in sorted(ids, reverse=True):
        kind, end, _ = key.partition("_bar_")
        if end:
            kind += "basin" if "basin" in key else ""
            numbers[kind] += 1
            names[key] = sys.intern(f"{kind} {numbers[kind]}")
    return names


def build_game(problem: Problem, name: str) -> Game:
    """Return the playable form of a problem; `ValueError` if its facts do not make a household."""
    house = House(problem)
    names = display_names(problem.ids())
    receptacles = tuple(names[key] for key in house.receptacles)
    roads = dict(sorted((f"go to {text}", r) for r, text in enumerate(receptacles)))
    return Game(
        name=name,
        goal=problem.goal,
        sentence=problem.sentence,
        walkthrough=problem.walkthrough,
        receptacles=receptacles,
        location_of=house.location_of,
        at=house.at,
        openable=house.receptacles_in(problem.members("openable")),
        sinks=house.receptacles_of(_SINKS),
        microwaves=house.receptacles_of(_MICROWAVES),
        fridges=house.receptacles_of(_FRIDGES),
        objects=tuple(names[key] for key in house.objects),
        fits=house.fits,
        pickable=house.pickable,
        cleanable=house.having("cleanable"),
        heatable=house.having("heatable"),
        coolable=house.having("coolable"),
        toggleable=house.having("toggleable"),
        sliceable=house.sliceable,
        knives=house.knives,
        vessels=_vessels(house, names),
        targets=_targets(house),
        places=_places(house),
        lamps=_lamps(house),
        roads=roads,
        blocked=tuple(
            tuple(i for i, r in reversed(list(enumerate(roads.values()))) if r in here)
            for here in house.at
        ),
        memorable=house.memorable(),
        initial=house.initial(),
        layout=house.layout,
        aim=_aim(house),
        salt=_salt(problem, name),
    )


def _vessels(house: House, names: dict[str, str]) -> dict[int, str]:
    """Return the constant text of examining each object with an inside."""
    inner: dict[str, list[str]] = {}
    for key, outer in sorted(house.problem.pairs("inreceptacleobject")):
        if key != outer:
            inner.setdefault(outer, []).append(names[key])
    return {
        house.objects[key]: f"This is a normal {names[key]}. In it, you see "
        f"{listing(inner.get(key, ()))}."
        for key in house.problem.members("isreceptacleobject")
        if key in house.objects and house.pickable >> house.objects[key] & 1
    }


def _salt(problem: Problem, name: str) -> bytes:
    facts = sorted(
        " ".join((predicate, *fact)) for predicate, known in problem.facts.items() for fact in known
    )
    text = "\n".join([name, problem.sentence, repr(problem.goal), *facts])
    return blake2b(text.encode(), digest_size=16).digest()


def _targets(house: House) -> int:
    return house.objects_of(frozenset({f"{house.problem.goal.target}type"}))


def _places(house: House) -> tuple[int, ...]:
    goal = house.problem.goal
    if goal.family == "look":
        return ()
    return tuple(members(house.receptacles_of(frozenset({f"{goal.place}type"}))))


def _lamps(house: House) -> tuple[tuple[int, int], ...]:
    goal = house.problem.goal
    if goal.family != "look":
        return ()
    lamps = house.objects_of(frozenset({f"{goal.place}type"})) & house.having("toggleable")
    return tuple((o, r) for o, r in sorted(house.stored) if lamps >> o & 1)


def _aim(house: House) -> Aim:
    layout, family = house.layout, house.problem.goal.family
    targets, places = _targets(house), _places(house)
    if family == "look":
        lit = [
            (
                Wanted(1 << (layout.toggled + o), 1, "lamp on"),
                Wanted(1 << house.location_of[r], 1, "at the lamp"),
            )
            for o, r in _lamps(house)
        ]
        return aim_at(lit, [(Wanted(targets << layout.held, 1, "held"),)])
    if family == "pick2":
        inside = (house.inside(members(targets), [r]) for r in places)
        return aim_at([(Wanted(bits, 2, "in place"),) for bits in inside])
    if family == "pick":
        return aim_at([(Wanted(house.inside(members(targets), places), 1, "in place"),)])
    start, name = {
        "clean": (layout.clean, "clean"),
        "heat": (layout.hot, "hot"),
        "cool": (layout.cool, "cool"),
    }[family]
    return aim_at(
        [
            (
                Wanted(1 << (start + o), 1, name),
                Wanted(house.inside([o], places), 1, "in place"),
            )
            for o in members(targets & house.having(f"{family}able"))
        ]
    )
