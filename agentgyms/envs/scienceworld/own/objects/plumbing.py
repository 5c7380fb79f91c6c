"""Devices with water and a drain: sinks, bathtubs and toilets."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

from agentgyms.envs.scienceworld.own.objects.base import (
    FIXED,
    MODE_CURSORY_DETAIL,
    MODE_DETAILED,
    EnvObject,
)
from agentgyms.envs.scienceworld.own.objects.containers import add_missing_water
from agentgyms.envs.scienceworld.own.objects.devices import Device
from agentgyms.envs.scienceworld.own.objects.portals import LiquidDrain
from agentgyms.envs.scienceworld.own.objects.substances import Water
from agentgyms.envs.scienceworld.own.objects.texts import object_list_to_string_description
from agentgyms.envs.scienceworld.own.properties.container import IsOpenUnclosableContainer
from agentgyms.envs.scienceworld.own.properties.material import MaterialProperties
from agentgyms.envs.scienceworld.own.properties.materials import CeramicProp, SteelProp
from agentgyms.envs.scienceworld.own.sets import FrozenSet
from agentgyms.envs.scienceworld.own.world import World

_FLUSH_TICKS: Final = 5


class _Basin(Device):
    """An open device that water runs into."""

    NAME: ClassVar[str]
    MATERIAL: ClassVar[Callable[[], MaterialProperties]] = SteelProp

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.name = self.NAME
        self.prop_material = type(self).MATERIAL()
        self.prop_container = IsOpenUnclosableContainer()
        self.prop_moveable = FIXED

    def _add_drain(self, drains_to: EnvObject) -> LiquidDrain:
        drain = LiquidDrain(self.world, True, self, drains_to)
        self.add_portal(drain)
        return drain

    def _run_water(self) -> None:
        for obj in self.contained_objects():
            container = obj.prop_container
            if container is not None and container.is_container and container.is_open:
                add_missing_water(obj)
        add_missing_water(self)

    def referents(self) -> FrozenSet[str]:
        return FrozenSet.of(self.NAME, self.name, self.descript_name())


class _Tapped(_Basin):
    """A basin with a tap, from which water runs while it is on."""

    def __init__(self, world: World, drains_to: EnvObject | None) -> None:
        super().__init__(world)
        if drains_to is not None:
            self._add_drain(drains_to)

    def tick(self) -> bool:
        if self.is_on:
            self._run_water()
        return super().tick()

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        name = self.descript_name()
        state = "on" if self.is_on else "off"
        listed = object_list_to_string_description(self.contained_objects(), self)
        told = f"a {name}, which is turned {state}. In the {name} is: {listed}."
        if mode != MODE_DETAILED:
            return told
        drains = [portal for portal in self.portals() if isinstance(portal, LiquidDrain)]
        return told + "".join(f" The {d.name} is {d.open_closed_str()}." for d in drains)


class Sink(_Tapped):
    """A sink."""

    NAME = "sink"


class Bathtub(_Tapped):
    """A bathtub."""

    NAME = "bathtub"
    MATERIAL = CeramicProp


class Toilet(_Basin):
    """A toilet whose drain is open while it flushes, and until the first tick."""

    NAME = "toilet"

    def __init__(self, world: World, drains_to: EnvObject) -> None:
        super().__init__(world)
        self.drain = self._add_drain(drains_to)
        self.toilet_flush_stage = 0
        self.add_object(Water(world))

    def tick(self) -> bool:
        """Begin, continue or end a flush."""
        if self.is_on and self.toilet_flush_stage == 0:
            self.toilet_flush_stage = 1
            self._set_drain(True)
        if self.toilet_flush_stage > 0:
            self._run_water()
            self.toilet_flush_stage += 1
            if self.toilet_flush_stage > _FLUSH_TICKS:
                self.toilet_flush_stage = 0
                if self.prop_device is not None:
                    self.prop_device.is_activated = False
        if self.toilet_flush_stage == 0:
            self._set_drain(False)
        return super().tick()

    def _set_drain(self, is_open: bool) -> None:
        if self.drain.prop_portal is not None:
            self.drain.prop_portal.is_open = is_open

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Describe the toilet, that it is flushing, and what is in it."""
        name = self.descript_name()
        flushing = ", which is flushing" if self.toilet_flush_stage > 0 else ""
        told = f"a {name}{flushing}. "
        if not self.contained_objects():
            return told
        listed = object_list_to_string_description(self.contained_objects_and_portals(), self)
        return f"{told}In the {name} is: {listed}."
