"""The change between solid, liquid and gas."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.objects.base import EnvObject


def change_of_state(obj: EnvObject, force_name_update: bool = False) -> None:
    """Set an object's state of matter by its temperature; a new state gives it its name, too."""
    material = obj.prop_material
    if material is None:
        return
    warmth = material.temperature_c
    if warmth < material.melting_point:
        state = "solid"
    elif warmth > material.boiling_point:
        state = "gas"
    else:
        state = "liquid"
    if state == material.state_of_matter and not force_name_update:
        return
    material.state_of_matter = state
    obj.name = material.name_in_state_of_matter.get(state, obj.name)
