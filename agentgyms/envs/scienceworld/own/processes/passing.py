"""What a turn's time does to any object, before it does so to what is in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgyms.envs.scienceworld.own.processes.combustion import combustion_tick
from agentgyms.envs.scienceworld.own.processes.electricity import (
    unpolarized_electrical_conductivity_tick,
)
from agentgyms.envs.scienceworld.own.processes.heat import (
    heat_transfer_touching,
    heat_transfer_within,
)
from agentgyms.envs.scienceworld.own.processes.matter import change_of_state

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.objects.base import EnvObject, Objects
    from agentgyms.envs.scienceworld.own.properties.material import MaterialProperties


def pass_time(obj: EnvObject) -> Objects:
    """Burn, warm or cool, melt and charge an object; return what is in it then."""
    material = obj.prop_material
    if material is None:
        inside = obj.ticking_objects()
        if inside:
            heat_transfer_touching(_materials(inside))
    else:
        if material.is_combusting or material.temperature_c >= material.combustion_point:
            combustion_tick(obj)
        inside = obj.ticking_objects()
        if inside:
            touching = _materials(inside)
            heat_transfer_within(material, touching)
            heat_transfer_touching(touching)
        change_of_state(obj)
    terminal = obj.terminal1
    if terminal is not None and not (
        # Neither has a connection, or a voltage to clear: so it is with nearly all objects.
        terminal.is_idle() and obj.terminal2 is not None and obj.terminal2.is_idle()
    ):
        unpolarized_electrical_conductivity_tick(obj)
    return inside


def _materials(objs: Objects) -> list[MaterialProperties]:
    return [obj.prop_material for obj in objs if obj.prop_material is not None]
