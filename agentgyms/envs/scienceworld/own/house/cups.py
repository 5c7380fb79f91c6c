"""Cups with a liquid, which tasks put somewhere."""

from __future__ import annotations

from typing import Final

from agentgyms.envs.scienceworld.own.objects.base import EnvObject
from agentgyms.envs.scienceworld.own.objects.containers import (
    CeramicCup,
    Cup,
    GlassCup,
    Jug,
    MetalPot,
    PaperCup,
    PlasticCup,
    TinCup,
    WoodCup,
)

_KINDS: Final[tuple[type[Cup], ...]] = (
    MetalPot,
    GlassCup,
    PlasticCup,
    TinCup,
    PaperCup,
    CeramicCup,
    Jug,
)


def mk_random_liquid_cup(liquid_to_insert: EnvObject) -> EnvObject:
    """Return an open container of a random kind, as warm as the liquid in it."""
    world = liquid_to_insert.world
    drawn = world.random.next_int(len(_KINDS))
    WoodCup(world)  # The engine makes it first and throws it away; it takes three numbers.
    cup = _KINDS[drawn](world)
    if cup.prop_container is not None:
        cup.prop_container.is_open = True
    if cup.prop_material is not None and liquid_to_insert.prop_material is not None:
        cup.prop_material.temperature_c = liquid_to_insert.prop_material.temperature_c
    cup.add_object(liquid_to_insert)
    return cup
