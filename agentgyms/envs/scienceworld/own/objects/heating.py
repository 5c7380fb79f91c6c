"""Devices that heat: stoves, ovens and a lighter."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from agentgyms.envs.scienceworld.own.objects.base import (
    FIXED,
    MODE_CURSORY_DETAIL,
    MODE_DETAILED,
    EnvObject,
)
from agentgyms.envs.scienceworld.own.objects.devices import Device
from agentgyms.envs.scienceworld.own.objects.texts import object_list_to_string_description
from agentgyms.envs.scienceworld.own.processes.combustion import set_object_on_fire
from agentgyms.envs.scienceworld.own.processes.heat import heat_transfer_heat_source
from agentgyms.envs.scienceworld.own.properties.container import (
    ContainerProperties,
    IsContainer,
    IsNotContainer,
    IsOpenUnclosableContainer,
)
from agentgyms.envs.scienceworld.own.properties.materials import MetalProp
from agentgyms.envs.scienceworld.own.properties.simple import (
    HeatSourceProperties,
    HeatSourcePropertiesBlastFurnace,
    HeatSourcePropertiesLighter,
    HeatSourcePropertiesOven,
    HeatSourcePropertiesStove,
    IsUsableNonActivable,
)
from agentgyms.envs.scienceworld.own.sets import FrozenSet
from agentgyms.envs.scienceworld.own.world import World

_LIGHTER_STEP_C = 10.0


class HeatSource(Device):
    """A device that heats what is in it; kinds differ in the data below."""

    NAME: ClassVar[str] = "heat source"
    HEAT: ClassVar[Callable[[], HeatSourceProperties]] = HeatSourcePropertiesStove
    CONTAINER: ClassVar[Callable[[], ContainerProperties] | None] = None

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.name = self.NAME
        self.prop_heat_source = type(self).HEAT()
        opens = type(self).CONTAINER
        if opens is not None:
            self.prop_container = opens()

    def tick(self) -> bool:
        """Heat what is in the device."""
        for obj in self.contained_objects():
            heat_transfer_heat_source(self, obj)
        return super().tick()

    def _follow_switch(self) -> None:
        if self.prop_device is None or self.prop_heat_source is None:
            return
        if self.prop_device.is_activated:
            self.prop_heat_source.set_on_max()
        else:
            self.prop_heat_source.set_off()


class _Fixed(HeatSource):
    """A heat source that stands in a room."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.prop_moveable = FIXED

    def tick(self) -> bool:
        self._follow_switch()
        return super().tick()


class _Plate(_Fixed):
    """A heat source that things stand on, named without fire even if it burns."""

    CONTAINER = IsOpenUnclosableContainer

    def referents(self) -> FrozenSet[str]:
        return FrozenSet.of(self.NAME, self.name)

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        state = "on" if self.is_on else "off"
        listed = object_list_to_string_description(self.contained_objects_and_portals(), self)
        return f"a {self.name}, which is turned {state}. On the {self.NAME} is: {listed}."


class Stove(_Plate):
    """A stove."""

    NAME = "stove"


class HotPlate(_Plate):
    """A hot plate."""

    NAME = "hot plate"


class _Chamber(_Fixed):
    """A heat source with a door."""

    NOUN: ClassVar[str]
    CONTAINER = IsContainer

    def referents(self) -> FrozenSet[str]:
        return FrozenSet.of(self.NOUN, self.name, self.descript_name())

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        name = self.descript_name()
        is_open = self.prop_container is not None and self.prop_container.is_open
        told = (
            f"a {name}, which is turned {'on' if self.is_on else 'off'}. "
            f"The {name} door is {'open' if is_open else 'closed'}. "
        )
        contents = self.contained_objects_and_portals()
        if is_open and mode == MODE_CURSORY_DETAIL:
            listed = object_list_to_string_description(contents, self)
            return f"{told}In the {name} is: {listed}."
        if is_open and mode == MODE_DETAILED:
            listed = object_list_to_string_description(contents, self, multiline=True)
            return f"{told}In the {name} is: \n{listed}"
        return told


class Oven(_Chamber):
    """An oven."""

    NAME = "oven"
    NOUN = "oven"
    HEAT = HeatSourcePropertiesOven


class BlastFurnace(_Chamber):
    """A blast furnace."""

    NAME = "blast furnace"
    NOUN = "furnace"
    HEAT = HeatSourcePropertiesBlastFurnace


class Lighter(HeatSource):
    """A lighter, which heats or burns what it is used on."""

    NAME = "lighter"
    HEAT = HeatSourcePropertiesLighter
    CONTAINER = IsNotContainer

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.prop_material = MetalProp()
        self.prop_device = IsUsableNonActivable()

    def use_with(self, patient_obj: EnvObject) -> tuple[bool, str]:
        """Set the thing on fire if the lighter is hot enough, else heat it a little."""
        material = patient_obj.prop_material
        if material is None or self.prop_heat_source is None:
            return True, "It's not clear how to use those items together."
        hottest = self.prop_heat_source.max_temp
        if material.combustion_point <= hottest:
            return True, set_object_on_fire(patient_obj)[1]
        delta = min(hottest - material.temperature_c, _LIGHTER_STEP_C)
        if delta + material.temperature_c > hottest:
            delta = hottest - material.temperature_c
        material.temperature_c += max(delta, 0.0)
        return True, f"The lighter heats up the {patient_obj.name} a small amount."

    def tick(self) -> bool:
        """Let the lighter's heat go out, for it has no switch."""
        self._follow_switch()
        return super().tick()

    def referents(self) -> FrozenSet[str]:
        """Return the names that a command may use."""
        return FrozenSet.of("lighter", self.name, self.descript_name())

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Describe the lighter."""
        return f"a {self.descript_name()}"
