"""Checks that an integer from a snapshot, which may be damaged, is a state of a game."""

from __future__ import annotations

from agentgyms.envs.alfworld.game import Game, members


def check_state(game: Game, bits: int) -> None:
    """Check that `bits` is a valid state; a `ValueError` says which facts are impossible."""
    layout = game.layout
    if bits < 0 or bits >> layout.end:
        raise ValueError("the state has facts that this game does not know")
    _check_agent(game, bits)
    _check_things(game, bits)
    _check_places(game, bits)
    _check_memory(game, bits)


def _part(bits: int, start: int, end: int) -> int:
    return bits >> start & ((1 << (end - start)) - 1)


def _check_agent(game: Game, bits: int) -> None:
    layout = game.layout
    if _part(bits, 0, layout.opened).bit_count() != 1:
        raise ValueError("the agent is not at exactly one location")
    held = _part(bits, layout.held, layout.clean)
    if held.bit_count() > 1 or held & ~game.pickable:
        raise ValueError("the agent holds something impossible")


def _check_things(game: Game, bits: int) -> None:
    layout, first = game.layout, game.initial
    if _part(bits, layout.opened, layout.held) & ~game.openable:
        raise ValueError("a receptacle is open that cannot be opened")
    for name, able, start, end in (
        ("clean", game.cleanable, layout.clean, layout.hot),
        ("hot", game.heatable, layout.hot, layout.cool),
        ("cool", game.coolable, layout.cool, layout.toggled),
        ("on", game.toggleable, layout.toggled, layout.sliced),
        ("sliced", game.sliceable, layout.sliced, layout.inside),
    ):
        if _part(bits, start, end) & ~(able | _part(first, start, end)):
            raise ValueError(f"something is {name} that cannot be")


def _check_places(game: Game, bits: int) -> None:
    """Check that every object is in exactly one valid place."""
    layout, wide = game.layout, len(game.receptacles)
    for o in range(len(game.objects)):
        start = layout.inside + o * wide
        now = _part(bits, start, start + wide)
        at_first = _part(game.initial, start, start + wide)
        movable = game.pickable >> o & 1
        room = sum(1 << r for r in range(wide) if game.fits[r] >> o & 1) if movable else 0
        if now & ~(room | at_first) or (not movable and now != at_first):
            raise ValueError(f"{game.objects[o]} is where it cannot be")
        if at_first and not now and not bits >> (layout.held + o) & 1:
            raise ValueError(f"{game.objects[o]} is nowhere")


def _check_memory(game: Game, bits: int) -> None:
    layout, wide, places = game.layout, len(game.receptacles), len(game.at)
    for pair in members(_part(bits, layout.taken, layout.beside)):
        o, r = divmod(pair, wide)
        if not game.memorable[r] >> o & 1:
            raise ValueError(f"{game.objects[o]} was never taken from there")
    for pair in members(_part(bits, layout.beside, layout.end)):
        o, place = divmod(pair, places)
        left = any(bits >> (layout.taken + o * wide + r) & 1 for r in game.at[place])
        if not (left or (game.sliceable >> o & 1 and game.at[place])):
            raise ValueError(f"{game.objects[o]} lies where it was never put")
