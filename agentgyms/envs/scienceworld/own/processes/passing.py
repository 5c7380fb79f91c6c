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
    from agentgyms.envs.scienceworld.own.objects.base import EnvObject


def pass_time(obj: EnvObject) -> None:
    """Burn, warm or cool, melt and charge an object."""
    material = obj.prop_material
    if material is not None and (
        material.is_combusting or material.temperature_c >= material.combustion_point
    ):
        combustion_tick(obj)
    inside = obj.ticking_objects()
    if inside:
        touching = [inner.prop_material for inner in inside if inner.prop_material is not None]
        if material is not None:
            heat_transfer_within(material, touching)
        heat_transfer_touching(touching)
    if material is not None:
        change_of_state(obj)
    if obj.terminal1 is not None:
        unpolarized_electrical_conductivity_tick(obj)
