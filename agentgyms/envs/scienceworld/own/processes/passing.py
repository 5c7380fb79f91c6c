"""What a turn's time does to any object, before it does so to what is in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgyms.envs.scienceworld.own.processes.combustion import combustion_tick
from agentgyms.envs.scienceworld.own.processes.electricity import (
    unpolarized_electrical_conductivity_tick,
)
from agentgyms.envs.scienceworld.own.processes.heat import heat_transfer_touching_objects
from agentgyms.envs.scienceworld.own.processes.matter import change_of_state

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.objects.base import EnvObject


def pass_time(obj: EnvObject) -> None:
    """Burn, warm or cool, melt and charge an object."""
    if obj.prop_material is not None:
        combustion_tick(obj)
    touching = [inner for inner in obj.ticking_objects() if inner.prop_material is not None]
    if obj.prop_material is not None:
        for inner in touching:
            heat_transfer_touching_objects(obj, inner)
    for position, inner in enumerate(touching):
        for other in touching[:position]:
            heat_transfer_touching_objects(inner, other)
    if obj.prop_material is not None:
        change_of_state(obj)
    unpolarized_electrical_conductivity_tick(obj)
