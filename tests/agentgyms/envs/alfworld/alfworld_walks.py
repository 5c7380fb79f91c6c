"""Walks through a game that reach its rare commands, for comparing engines.

A walk is a series of errands, such as slicing something twice or moving a thing to the neighbour
of the receptacle it was in, mixed with random commands and with junk.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from agentgyms.envs.alfworld.engine import State
from agentgyms.envs.alfworld.expert import Deed, best, command
from agentgyms.envs.alfworld.game import Game, members

JUNK = (
    "",
    "  look ",
    "LOOK",
    "look around",
    "go to",
    "go to nowhere 1",
    "take mug 1",
    "examine desk 99",
    "use desklamp 7",
    "help me",
    "put mug 1 in/on desk 1",
    "厨房",
)


def walk(state: State, rng: random.Random, num_steps: int) -> Iterator[str]:
    """Yield commands; the caller makes each of them in `state` before asking for the next."""
    taken = 0
    finish = rng.random() < 0.3
    while taken < num_steps:
        for step in _errand(state, rng, finish=finish and taken > num_steps // 2):
            yield step
            taken += 1
            if state.won or taken >= num_steps:
                return


def _errand(state: State, rng: random.Random, *, finish: bool) -> Iterator[str]:
    if finish:
        yield best(state)
        return
    kinds = (_treat, _slice, _neighbour, _vessel, _lamp, _door, _strays, _carry)
    weights = (7, 3, 4, 2, 5, 2, 3, 2)
    yield from rng.choices(kinds, weights)[0](state, rng)


def _do(state: State, deed: Deed) -> Iterator[str]:
    """Yield the commands of a deed: going there, opening, doing it."""
    for _ in range(3):
        step = command(state, deed)
        yield step
        if step.startswith(deed[0]):
            return


def _empty_hands(state: State, rng: random.Random) -> Iterator[str]:
    fitting = [r for r, fits in enumerate(state.game.fits) if state.held >= 0]
    fitting = [r for r in fitting if state.game.fits[r] >> state.held & 1]
    if fitting:
        yield from _do(state, ("move", state.held, rng.choice(fitting)))


def _take(state: State, rng: random.Random, wanted: int) -> Iterator[str]:
    """Yield the way to hold one of the wanted objects, if there is one."""
    yield from _empty_hands(state, rng)
    held = state.held
    homes = [
        (o, r)
        for r, inside in enumerate(state.contents)
        for o in inside
        if wanted & state.game.pickable & 1 << o
    ]
    if homes and held < 0:
        o, r = rng.choice(homes)
        yield from _do(state, ("take", o, r))


def _treat(state: State, rng: random.Random) -> Iterator[str]:
    game = state.game
    verb, able, tools = rng.choice(
        [
            ("clean", game.cleanable, game.sinks),
            ("heat", game.heatable, game.microwaves),
            ("cool", game.coolable, game.fridges),
        ]
    )
    if not tools or not able:
        return
    yield from _take(state, rng, able)
    if state.held >= 0 and able >> state.held & 1:
        tool = rng.choice(list(members(tools)))
        yield from _do(state, (verb, state.held, tool))
        yield command(state, (verb, state.held, tool))
        yield f"examine {game.objects[state.held]}"
        yield "inventory"


def _slice(state: State, rng: random.Random) -> Iterator[str]:
    game = state.game
    if not game.knives or not game.sliceable:
        return
    yield from _take(state, rng, game.knives)
    if state.held < 0 or not game.knives >> state.held & 1:
        return
    food = [
        (o, r) for r, inside in enumerate(state.contents) for o in inside if game.sliceable >> o & 1
    ]
    if not food:
        return
    o, r = rng.choice(food)
    if game.location_of[r] != state.location:
        yield f"go to {game.receptacles[r]}"
    for _ in range(2):
        yield f"slice {game.objects[o]} with {game.objects[state.held]}"
    yield "look"
    yield from _take(state, rng, 1 << o)
    yield f"examine {game.objects[o]}"


def _shared(game: Game) -> list[tuple[int, ...]]:
    return [here for here in game.at if len(here) > 1]


def _neighbour(state: State, rng: random.Random) -> Iterator[str]:
    """Move something to the neighbour of its receptacle and back, looking each time."""
    game = state.game
    moves = [
        (o, r, other)
        for here in _shared(game)
        for r in here
        for other in here
        for o in state.contents[r]
        if other != r and game.fits[other] >> o & 1 and game.pickable >> o & 1
    ]
    if not moves:
        return
    yield from _empty_hands(state, rng)
    o, r, other = rng.choice(moves)
    if state.held >= 0 or o not in state.contents[r]:
        return
    yield from _do(state, ("take", o, r))
    yield from _do(state, ("move", o, other))
    yield "look"
    yield from _do(state, ("take", o, other))
    yield "look"
    yield from _do(state, ("move", o, rng.choice((r, other))))
    yield "look"


def _vessel(state: State, rng: random.Random) -> Iterator[str]:
    vessels = sum(1 << o for o in state.game.vessels)
    yield from _take(state, rng, vessels or ~0)
    if state.held >= 0:
        yield f"examine {state.game.objects[state.held]}"


def _lamp(state: State, rng: random.Random) -> Iterator[str]:
    game = state.game
    lamps = [(o, r) for r, inside in enumerate(state.contents) for o in inside]
    lamps = [(o, r) for o, r in lamps if game.toggleable >> o & 1]
    if lamps:
        o, r = rng.choice(lamps)
        yield from _do(state, ("use", o, r))
        yield f"use {game.objects[o]}"
        yield f"take {game.objects[o]} from {game.receptacles[r]}"
        yield f"examine {game.objects[o]}"


def _door(state: State, rng: random.Random) -> Iterator[str]:
    game = state.game
    doors = list(members(game.openable))
    if not doors:
        return
    r = rng.choice(doors)
    name = game.receptacles[r]
    yield from _do(state, ("open", -1, r))
    yield f"examine {name}"
    yield f"close {name}"
    if state.contents[r]:
        yield f"take {game.objects[state.contents[r][0]]} from {name}"
    yield f"close {name}"


def _strays(state: State, rng: random.Random) -> Iterator[str]:
    for _ in range(4):
        local = [c for c in state.admissible if not c.startswith("go to")]
        chosen = rng.random()
        if chosen < 0.2:
            yield rng.choice(JUNK)
        else:
            yield rng.choice(local if chosen < 0.7 else list(state.admissible))


def _carry(state: State, rng: random.Random) -> Iterator[str]:
    """Take anything anywhere, put it down elsewhere, often where it was before."""
    yield from _take(state, rng, ~0)
    if rng.random() < 0.5 and state.held >= 0:
        here = [r for r in state.game.at[state.location] if state.game.fits[r] >> state.held & 1]
        if here:
            yield from _do(state, ("move", state.held, rng.choice(here)))
            yield "look"
            return
    yield from _empty_hands(state, rng)
