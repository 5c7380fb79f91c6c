"""The list of possible actions: what the engine finds valid for the objects that are near."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

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
"""A word of an object's own, and the object."""

_ALWAYS = ("inventory", "look around", "reset task", "task", "wait", "wait1")


def possible_actions(
    agent: Agent, here: EnvObject, universe: EnvObject, simplifier: SimplifierProcessor
) -> list[str]:
    """Return the actions that the engine lists, sorted, each once; draws where names clash."""
    objs = collect_objects(here)
    # In the order of their words, so that the actions need little sorting.
    near = sorted(zip(unique_referents(objs, here), objs, strict=True), key=_word)
    out = [*_ALWAYS, *_with_one(agent, here, near), *_with_two(near)]
    if not simplifier.is_simplification_enabled(SIMPLIFICATION_NO_ELECTRICAL_ACTION):
        out += _wiring(near)
    if simplifier.is_simplification_enabled(SIMPLIFICATION_TELEPORT_ACTION):
        everything = collect_objects(universe, include_hidden=True)
        words = unique_referents(everything, here)
        out += [
            f"teleport to {word}"
            for word, obj in zip(words, everything, strict=True)
            if moving.is_teleport_aim(obj)
        ]
    return sorted(dict.fromkeys(out))


def _with_one(agent: Agent, here: EnvObject, near: list[Named]) -> list[str]:
    out = [f"look at {word}" for word, _ in near] + [f"focus on {word}" for word, _ in near]
    for verb, applies in _TESTS:
        out += [f"{verb} {word}" for word, obj in near if applies(obj)]
    out += [f"go to {word}" for word, obj in near if not moving.why_not_go(agent, obj)]
    inventory = agent.inventory_container()
    held = inventory.contained_objects_not_hidden()
    for verb, aim, from_held in (("pick up", inventory, False), ("put down", here, True)):
        if _is_open(aim):
            out += [
                f"{verb} {word}"
                for word, obj in near
                if obj is not aim and _can_carry(obj) and (obj in held) == from_held
            ]
    return out


def _with_two(near: list[Named]) -> list[str]:
    aims = [(word, obj) for word, obj in near if _is_open(obj)]
    carried = [(word, obj) for word, obj in near if _can_carry(obj)]
    poured = [word for word, obj in near if _can_pour(obj)]
    vessels = [(word, obj) for word, obj in near if not moving.why_not_dunk(obj)]
    sources = [(word, obj) for word, obj in near if moving.movable_liquids(obj)]
    devices = [word for word, obj in near if handling.is_usable(obj)]
    return [
        *_pairs("move", carried, "to", aims),
        # The engine lists a thing into itself, too.
        *(f"pour {word} into {aim}" for word in poured for aim, _ in aims),
        # The engine lists the liquid's place first, though a command has it last.
        *_pairs("dunk", sources, "into", vessels),
        *(f"use {word} on {other}" for word in devices for other, _ in near),
    ]


def _pairs(
    verb: str, first: Sequence[Named], joiner: str, second: Sequence[Named]
) -> Iterator[str]:
    for word, obj in first:
        beginning = f"{verb} {word} {joiner} "
        yield from [beginning + other_word for other_word, other in second if obj is not other]


def _wiring(near: list[Named]) -> list[str]:
    ends: list[Named] = []
    for word, obj in near:
        terminal = connecting.terminal_of(obj)[0]
        if terminal is not None and not connecting.is_taken(terminal):
            ends.append((word, terminal))
    whole = [f"disconnect {word}" for word, obj in near if not isinstance(obj, Terminal)]
    return [*whole, *_pairs("connect", ends, "to", ends)]


def _word(pair: Named) -> str:
    return pair[0]


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


def _can_pour(obj: EnvObject) -> bool:
    if moving.why_not_pour_out(obj):
        return False
    return not moving.is_vessel(obj) or bool(obj.contained_objects())


_TESTS: tuple[tuple[str, Callable[[EnvObject], bool]], ...] = (
    ("activate", handling.ActionActivate.applies),
    ("close", _can_close),
    ("deactivate", handling.ActionDeactivate.applies),
    ("eat", handling.is_edible),
    ("flush", handling.can_flush),
    ("look in", _is_open),
    ("mix", handling.is_mixable),
    ("open", _can_open),
    ("read", _is_document),
)
"""The verbs of commands with one object, and the tests of the object."""
