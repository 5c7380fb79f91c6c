"""Shovels in the ground."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.objects.base import EnvObject


def do_shovel(obj: EnvObject) -> tuple[bool, str]:
    """Dig with a shovel; return whether that works, and the text."""
    from agentgyms.envs.scienceworld.own.life.plants import Soil
    from agentgyms.envs.scienceworld.own.objects.locations import Ground, Hole

    if not isinstance(obj, Ground):
        return (False, "It's not clear how to shovel that.")
    container = obj.container()
    if container is None:
        return (False, "ERROR: The ground does not appear to be in a location.")
    container.add_object(Hole(obj.world))
    container.add_object(Soil(obj.world))
    return (True, "You dig a hole in the ground, and place the soil nearby.")
