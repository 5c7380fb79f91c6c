"""Devices that cool: fridges and freezers, on at first."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from agentgyms.envs.scienceworld.own.objects.base import FIXED, MODE_CURSORY_DETAIL
from agentgyms.envs.scienceworld.own.objects.devices import Device
from agentgyms.envs.scienceworld.own.objects.texts import object_list_to_string_description
from agentgyms.envs.scienceworld.own.processes.heat import heat_transfer_cooling_source
from agentgyms.envs.scienceworld.own.properties.container import IsContainer
from agentgyms.envs.scienceworld.own.properties.simple import (
    CoolingSourceProperties,
    CoolingSourcePropertiesFreezer,
    CoolingSourcePropertiesFridge,
    CoolingSourcePropertiesULTFreezer,
    IsActivableDeviceOn,
)
from agentgyms.envs.scienceworld.own.sets import FrozenSet
from agentgyms.envs.scienceworld.own.world import World


class CoolingSource(Device):
    """A device that cools what is in it; kinds differ in the data below."""

    NAME: ClassVar[str] = "cooling source"
    COLD: ClassVar[Callable[[], CoolingSourceProperties]] = CoolingSourcePropertiesFridge

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.name = self.NAME
        self.prop_cooling_source = type(self).COLD()

    def tick(self) -> bool:
        """Cool what is in the device."""
        for obj in self.contained_objects():
            heat_transfer_cooling_source(self, obj)
        return super().tick()


class _Chest(CoolingSource):
    """A cooling source with a door."""

    NOUN: ClassVar[str]

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.prop_container = IsContainer()
        self.prop_moveable = FIXED
        self.prop_device = IsActivableDeviceOn()
        self._follow_switch()

    def _follow_switch(self) -> None:
        if self.prop_device is None or self.prop_cooling_source is None:
            return
        if self.prop_device.is_activated:
            self.prop_cooling_source.set_on_min()
        else:
            self.prop_cooling_source.set_off()

    def tick(self) -> bool:
        self._follow_switch()
        return super().tick()

    def referents(self) -> FrozenSet[str]:
        return FrozenSet.of(self.NOUN, self.name, self.descript_name())

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        name = self.descript_name()
        off = "" if self.is_on else ", which is turned off"
        if self.prop_container is None or not self.prop_container.is_open:
            return f"a {name}{off}. The {name} door is closed. "
        listed = object_list_to_string_description(self.contained_objects_and_portals(), self)
        return f"a {name}{off}. The {name} door is open. In the {name} is: {listed}."


class Fridge(_Chest):
    """A fridge."""

    NAME = "fridge"
    NOUN = "fridge"
    COLD = CoolingSourcePropertiesFridge


class Freezer(_Chest):
    """A freezer."""

    NAME = "freezer"
    NOUN = "freezer"
    COLD = CoolingSourcePropertiesFreezer


class UltraColdFreezer(_Chest):
    """A freezer for very low temperatures."""

    NAME = "ultra low temperature freezer"
    NOUN = "freezer"
    COLD = CoolingSourcePropertiesULTFreezer
