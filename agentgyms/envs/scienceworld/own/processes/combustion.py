"""Fire: how objects catch it, burn, set a heat and turn into ash."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentgyms.envs.scienceworld.own.objects.substances import Ash
from agentgyms.envs.scienceworld.own.sets import union

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.objects.base import EnvObject

COMBUSTION_DELTA_TEMP: Final = 200.0


def set_object_on_fire(obj: EnvObject) -> tuple[bool, str]:
    """Set an object on fire; return whether that is possible, and the text."""
    material = obj.prop_material
    if material is None:
        return (False, "That is not flammable.")
    if obj.is_on_fire():
        return (True, f"The {obj.name} is already on fire.")
    if material.combustion_ticks <= 0:
        return (True, f"The {obj.name} is not flammable.")
    material.is_combusting = True
    material.has_combusted = True
    return (True, f"The {obj.name} catches fire.")


def burning_temperature(obj: EnvObject) -> float:
    """Return the temperature of an object that burns."""
    if obj.prop_material is None:
        return -273.0
    return obj.prop_material.combustion_point + COMBUSTION_DELTA_TEMP


def put_out_fire(obj: EnvObject) -> None:
    """End an object's fire, and cool it so that it does not start again."""
    material = obj.prop_material
    if material is not None:
        material.is_combusting = False
        material.temperature_c = material.combustion_point - 10.0


def combustion_tick(obj: EnvObject) -> None:
    """Set an object on fire if it is hot enough, and let a burning one burn for a turn."""
    material = obj.prop_material
    if material is None:
        return
    if material.temperature_c >= material.combustion_point and not material.is_combusting:
        set_object_on_fire(obj)
    if material.is_combusting and material.combustion_ticks > 0:
        material.combustion_ticks -= 1
        material.temperature_c = max(material.temperature_c, burning_temperature(obj))
        if material.combustion_ticks == 0:
            _burn_down(obj)
        _look_for_water(obj)


def _burn_down(obj: EnvObject) -> None:
    assert obj.prop_material is not None
    obj.prop_material.is_combusting = False
    ash = Ash(obj.world)
    assert ash.prop_material is not None
    ash.prop_material.temperature_c = obj.prop_material.temperature_c
    container = obj.container()
    if container is not None:
        container.add_object(ash)
    obj.delete(expel_contents=True)


def _look_for_water(obj: EnvObject) -> None:
    """Put out an object's fire if water is in it or beside it; the water gets as hot."""
    assert obj.prop_material is not None
    container = obj.container()
    near = obj.contained_objects()
    if container is not None:
        near = union(near, container.contained_objects())
    for other in near:
        material = other.prop_material
        if material is None or material.substance_name != "water":
            continue
        if material.state_of_matter == "liquid":
            material.temperature_c = obj.prop_material.temperature_c
            put_out_fire(obj)
            return
