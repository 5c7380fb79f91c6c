"""Expert policies for any state of any game, for imitation and as references.

`best` sees the whole state. `explore` sees only what a player there could have seen, and keeps no
memory, so that a policy with a short history can imitate it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from agentgyms.envs.alfworld.engine import State
from agentgyms.envs.alfworld.game import Game, members

WAIT: Final = "look"
"""The command of an expert when the goal can no longer be reached."""

DEAD: Final = -1
"""Number of remaining commands when the goal can no longer be reached."""

TOOLS: Final = {"clean": "sinks", "heat": "microwaves", "cool": "fridges"}
FLAGS: Final = {"clean": "clean", "heat": "hot", "cool": "cool"}

_OPENING: Final = ("take", "move", "open")

Deed = tuple[str, int, int]
"""A verb, an object and a receptacle: to go there, open it if need be, and do it.

The verb `stay` means being there and no more.
"""


def expert_actions(state: State) -> dict[str, str]:
    """Return the next command of each expert, by name."""
    return {"best": best(state), "explore": explore(state)}


def walkthrough(game: Game, limit: int = 100) -> tuple[str, ...]:
    """Return the commands with which `best` wins the game within `limit` commands."""
    state = State(game)
    commands: list[str] = []
    while not state.won and len(commands) < limit:
        commands.append(best(state))
        move = state.find(commands[-1])
        if move is None:
            break
        state.perform(move)
    if not state.won:
        raise ValueError(f"no way was found to win {game.name} within {limit} commands")
    return tuple(commands)


def command(state: State, deed: Deed) -> str:
    """Return the next command of a step: going there, opening, or the step itself."""
    game = state.game
    verb, o, r = deed
    name = game.receptacles[r]
    if game.location_of[r] != state.location:
        return f"go to {name}"
    if verb in _OPENING and game.openable >> r & 1 and not state.is_open(r):
        return f"open {name}"
    thing = game.objects[o]
    match verb:
        case "take":
            return f"take {thing} from {name}"
        case "move":
            return f"move {thing} to {name}"
        case "use":
            return f"use {thing}"
        case "clean" | "heat" | "cool":
            return f"{verb} {thing} with {name}"
    return WAIT


# --- best: the whole state is known ------------------------------------------------------------


def best(state: State) -> str:
    """Return the first command of a shortest plan."""
    plan = _shortest(state)
    return WAIT if plan is None else command(state, plan[0])


def remaining(state: State) -> int:
    """Return the number of commands that `best` still gives, 0 if won; `DEAD` without a way."""
    if state.won:
        return 0
    plan = _shortest(state)
    return DEAD if plan is None else _length(state, plan)


def _shortest(state: State) -> tuple[Deed, ...] | None:
    return min(_plans(state), key=lambda plan: _length(state, plan), default=None)


def _length(state: State, plan: tuple[Deed, ...]) -> int:
    game, here, length = state.game, state.location, 0
    opened: set[int] = set()
    for verb, _, r in plan:
        length += (game.location_of[r] != here) + (verb != "stay")
        here = game.location_of[r]
        if verb in ("take", "move") and game.openable >> r & 1 and not state.is_open(r):
            length += r not in opened
            opened.add(r)
    return length


def _plans(state: State) -> Iterator[tuple[Deed, ...]]:
    """Yield plans for the goal; at least one is shortest, apart from where the hand is emptied."""
    family = state.game.goal.family
    # The nearest way to put down the held object, or None.
    places = [
        r for r, fits in enumerate(state.game.fits) if state.held >= 0 and fits >> state.held & 1
    ]
    deeds: list[Deed] = [("move", state.held, r) for r in places]
    free = min(deeds, key=lambda deed: _length(state, (deed,)), default=None)
    if family == "look":
        ways = _look_plans(state)
    elif family == "pick2":
        ways = _pair_plans(state)
    else:
        ways = _single_plans(state)
    for plan in ways:
        if plan[0][0] != "take" or state.held < 0:
            yield plan
        elif free is not None:
            yield (free, *plan)


def _fetched(state: State, o: int) -> list[tuple[Deed, ...]]:
    """Return the ways to get an object into the hand."""
    if state.held == o:
        return [()]
    if not state.game.pickable >> o & 1:
        return []
    return [(("take", o, r),) for r, inside in enumerate(state.contents) if o in inside]


def _nearest(state: State, o: int, before: tuple[Deed, ...]) -> Deed | None:
    """Return the way to put an object into the goal's nearest receptacle after `before`."""
    places = [r for r in state.game.places if state.game.fits[r] >> o & 1]
    deeds: list[Deed] = [("move", o, r) for r in places]
    return min(deeds, key=lambda deed: _length(state, (*before, deed)), default=None)


def _single_plans(state: State) -> Iterator[tuple[Deed, ...]]:
    game = state.game
    family = game.goal.family
    tools = list(members(getattr(game, TOOLS[family]))) if family in TOOLS else []
    for o in members(game.targets):
        treated = family not in TOOLS or FLAGS[family] in state.conditions(o)
        if not treated and not getattr(game, f"{family}able") >> o & 1:
            continue
        for fetched in _fetched(state, o):
            for treatment in [()] if treated else [((family, o, tool),) for tool in tools]:
                before = (*fetched, *treatment)
                stored = _nearest(state, o, before)
                if stored is not None:
                    yield (*before, stored)


def _pair_plans(state: State) -> Iterator[tuple[Deed, ...]]:
    game = state.game
    for r in game.places:
        outside = [
            (("move", o, r),) if fetched == () else (*fetched, ("move", o, r))
            for o in members(game.targets & game.fits[r])
            if o not in state.contents[r]
            for fetched in _fetched(state, o)
        ]
        stored = sum(game.targets >> o & 1 for o in state.contents[r])
        if stored:
            yield from outside
        else:
            yield from (
                (*first, *second)
                for first in outside
                for second in outside
                if first[-1] != second[-1] and second[0][0] == "take"
            )


def _look_plans(state: State) -> Iterator[tuple[Deed, ...]]:
    game = state.game
    for lamp, r in game.lamps:
        lit = "toggled" in state.conditions(lamp)
        shining: Deed = ("stay" if lit else "use", lamp, r)
        for o in members(game.targets):
            for fetched in _fetched(state, o):
                yield (*fetched, shining)


# --- explore: only what can be seen is known ---------------------------------------------------


def explore(state: State) -> str:
    """Return the next command of a player who searches receptacles in turn from where it stands."""
    if state.held < 0:
        return _search(state)
    o = state.held
    if not _useful(state, o):
        return _put_down(state)
    if state.game.goal.family == "look":
        # Switch on a lamp here, else go to the next place that may have one.
        game = state.game
        for lamp, r in game.lamps:
            if r in game.at[state.location] and (not game.openable >> r & 1 or state.is_open(r)):
                return command(state, ("use", lamp, r))
        return _go_on(
            state, [r for r in range(len(game.receptacles)) if not game.openable >> r & 1]
        )
    return command(state, _treatment(state, o) or ("move", o, _destination(state, o)))


def _useful(state: State, o: int) -> bool:
    game, family = state.game, state.game.goal.family
    if not game.targets & game.pickable & 1 << o:
        return False
    if family == "look":
        return True
    if family in TOOLS and FLAGS[family] not in state.conditions(o):
        able = getattr(game, f"{family}able") >> o & 1
        if not able or not getattr(game, TOOLS[family]):
            return False
    return _destination(state, o) >= 0


def _treatment(state: State, o: int) -> Deed | None:
    """Return how to clean, heat or cool the object, or None if that is not needed any more."""
    family = state.game.goal.family
    if family not in TOOLS or FLAGS[family] in state.conditions(o):
        return None
    tools = list(members(getattr(state.game, TOOLS[family])))
    return (family, o, _here_or_first(state, tools))


def _destination(state: State, o: int) -> int:
    """Return the receptacle for an object, or -1; for a pair always the first one."""
    game = state.game
    places = [r for r in game.places if game.fits[r] >> o & 1]
    if game.goal.family == "pick2":
        return places[0] if places else -1
    return _here_or_first(state, places)


def _here_or_first(state: State, receptacles: list[int]) -> int:
    here = state.game.at[state.location]
    return next((r for r in receptacles if r in here), receptacles[0] if receptacles else -1)


def _search(state: State) -> str:
    """Look into a receptacle here, else go to the next one that may hold an object."""
    done = _settled(state.game)
    for r in state.game.at[state.location]:
        if r in done:
            continue
        if state.game.openable >> r & 1 and not state.is_open(r):
            return command(state, ("open", -1, r))
        for o in state.contents[r]:
            if _useful(state, o):
                return command(state, ("take", o, r))
    return _go_on(state, [r for r in range(len(state.game.receptacles)) if r not in done])


def _settled(game: Game) -> tuple[int, ...]:
    """Return the goal's receptacles, which hold nothing that must still be moved."""
    if game.goal.family == "pick":
        return game.places
    return game.places[:1] if game.goal.family == "pick2" else ()


def _put_down(state: State) -> str:
    """Put the held object into a fitting receptacle here, else go to the next one."""
    fitting = [r for r, fits in enumerate(state.game.fits) if fits >> state.held & 1]
    for r in state.game.at[state.location]:
        if r in fitting:
            return command(state, ("move", state.held, r))
    return _go_on(state, fitting)


def _go_on(state: State, receptacles: list[int]) -> str:
    """Go to the next of some receptacles in cyclic order; those at one location are one stop."""
    game = state.game
    first = {place: here[0] for place, here in enumerate(game.at) if here}
    now = first.get(state.location, -1)
    stops = sorted({first[game.location_of[r]] for r in receptacles} - {now})
    if not stops:
        return WAIT
    return f"go to {game.receptacles[next((r for r in stops if r > now), stops[0])]}"
