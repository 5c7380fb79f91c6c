"""The list of possible actions: what the engine finds valid for the objects that are near."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from agentgyms.envs.scienceworld.own.commands import connecting, handling, moving
from agentgyms.envs.scienceworld.own.commands.referents import (
    collect_objects,
    unique_referents,
)
from agentgyms.envs.scienceworld.own.objects.agent import Agent
from agentgyms.envs.scienceworld.own.objects.base import EnvObject, Terminal
from agentgyms.envs.scienceworld.own.objects.documents import Document
from agentgyms.envs.scienceworld.own.simplify import (
    SIMPLIFICATION_NO_ELECTRICAL_ACTION,
    SIMPLIFICATION_TELEPORT_ACTION,
    SimplifierProcessor,
)

Named = tuple[str, EnvObject]

_ALWAYS = ("look around", "reset task", "wait1", "wait", "inventory", "task")


def possible_actions(
    agent: Agent, here: EnvObject, universe: EnvObject, simplifier: SimplifierProcessor
) -> list[str]:
    """Return the actions that the engine lists, in no order; it may draw at random for names."""
    objs = collect_objects(here)
    near = list(zip(unique_referents(objs, here), objs, strict=True))
    out = [*_ALWAYS, *_with_one(agent, here, near), *_with_two(near)]
    if not simplifier.is_simplification_enabled(SIMPLIFICATION_NO_ELECTRICAL_ACTION):
        out += _connections(near)
    if simplifier.is_simplification_enabled(SIMPLIFICATION_TELEPORT_ACTION):
        everything = collect_objects(universe, include_hidden=True)
        words = unique_referents(everything, here)
        out += [
            f"teleport to {word}"
            for word, obj in zip(words, everything, strict=True)
            if moving.is_teleport_aim(obj)
        ]
    return out


def _with_one(agent: Agent, here: EnvObject, near: list[Named]) -> Iterator[str]:
    tests: tuple[tuple[str, Callable[[EnvObject], bool]], ...] = (
        ("open", _can_open),
        ("close", _can_close),
        ("look in", _is_open),
        ("activate", handling.ActionActivate.applies),
        ("deactivate", handling.ActionDeactivate.applies),
        ("eat", handling.is_edible),
        ("read", _is_document),
        ("flush", handling.can_flush),
        ("mix", handling.is_mixable),
    )
    held = agent.inventory_container().contained_objects_not_hidden()
    can_take, can_drop = _is_open(agent.inventory_container()), _is_open(here)
    for word, obj in near:
        yield f"look at {word}"
        yield f"focus on {word}"
        for verb, applies in tests:
            if applies(obj):
                yield f"{verb} {word}"
        if not moving.why_not_go(agent, obj):
            yield f"go to {word}"
        if not _can_carry(obj):
            continue
        if obj not in held and can_take and obj is not agent.inventory_container():
            yield f"pick up {word}"
        if obj in held and can_drop and obj is not here:
            yield f"put down {word}"


def _with_two(near: list[Named]) -> Iterator[str]:
    aims = [(word, obj) for word, obj in near if _is_open(obj)]
    carried = [(word, obj) for word, obj in near if _can_carry(obj)]
    yield from _pairs("move", carried, "to", aims)
    for word, obj in near:
        if not moving.why_not_pour_out(obj):
            if moving.is_vessel(obj) and not obj.contained_objects():
                continue
            for aim_word, _ in aims:  # the engine lists it into itself, too
                yield f"pour {word} into {aim_word}"
    vessels = [(word, obj) for word, obj in near if not moving.why_not_dunk(obj)]
    sources = [(word, obj) for word, obj in near if moving.movable_liquids(obj)]
    # The engine lists the liquid's place first, though a command has it last.
    yield from _pairs("dunk", sources, "into", vessels)
    devices = [(word, obj) for word, obj in near if handling.is_usable(obj)]
    for word, _ in devices:
        for other, _ in near:
            yield f"use {word} on {other}"


def _pairs(verb: str, first: list[Named], joiner: str, second: list[Named]) -> Iterator[str]:
    for word, obj in first:
        for other_word, other in second:
            if obj is not other:
                yield f"{verb} {word} {joiner} {other_word}"


def _connections(near: Iterable[Named]) -> Iterator[str]:
    ends: list[tuple[str, Terminal]] = []
    for word, obj in near:
        if not isinstance(obj, Terminal):
            yield f"disconnect {word}"
        terminal = connecting.terminal_of(obj)[0]
        if terminal is not None and not connecting.is_taken(terminal):
            ends.append((word, terminal))
    for word, terminal in ends:
        for other_word, other in ends:
            if terminal is not other:
                yield f"connect {word} to {other_word}"


def _can_open(obj: EnvObject) -> bool:
    return not handling.ActionOpenDoor.refusal(obj)


def _can_close(obj: EnvObject) -> bool:
    return not handling.ActionCloseDoor.refusal(obj)


def _is_open(obj: EnvObject) -> bool:
    return obj.prop_container is not None and obj.prop_container.is_open


def _is_document(obj: EnvObject) -> bool:
    return isinstance(obj, Document)


def _can_carry(obj: EnvObject) -> bool:
    return moving.is_movable(obj) and moving.state_of(obj) not in ("liquid", "gas")
