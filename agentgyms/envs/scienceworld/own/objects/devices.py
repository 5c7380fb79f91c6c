"""Devices: tools to use on things, and a watch."""

from __future__ import annotations

from agentgyms.envs.scienceworld.own.objects.base import (
    MODE_CURSORY_DETAIL,
    MODE_DETAILED,
    EnvObject,
)
from agentgyms.envs.scienceworld.own.objects.texts import whole_number_text
from agentgyms.envs.scienceworld.own.processes.chopping import do_chop
from agentgyms.envs.scienceworld.own.processes.shovelling import do_shovel
from agentgyms.envs.scienceworld.own.properties.container import IsNotContainer
from agentgyms.envs.scienceworld.own.properties.materials import GlassProp, SteelProp
from agentgyms.envs.scienceworld.own.properties.simple import (
    IsActivableDeviceOff,
    IsUsable,
    IsUsableNonActivable,
)
from agentgyms.envs.scienceworld.own.sets import FrozenSet
from agentgyms.envs.scienceworld.own.world import World


class Device(EnvObject):
    """A thing with a switch, off at first."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.name = "device"
        self.prop_device = IsActivableDeviceOff()

    @property
    def is_on(self) -> bool:
        """Whether the device is activated."""
        return self.prop_device is not None and self.prop_device.is_activated

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Describe the device and its switch."""
        return f"a {self.descript_name()}, which is turned {'on' if self.is_on else 'off'}"


class Shovel(Device):
    """A shovel to dig with."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.name = "shovel"
        self.prop_material = SteelProp()
        self.prop_container = IsNotContainer()
        self.prop_device = IsUsableNonActivable()

    def use_with(self, patient_obj: EnvObject) -> tuple[bool, str]:
        """Dig, where the thing is the ground."""
        return do_shovel(patient_obj)

    def referents(self) -> FrozenSet[str]:
        """Return the names that a command may use."""
        return FrozenSet.of("shovel", self.name, self.descript_name())

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Describe the shovel."""
        return f"a {self.descript_name()}"


class Axe(Device):
    """An axe, for trees and for breaking devices."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.name = "axe"
        self.prop_material = SteelProp()
        self.prop_container = IsNotContainer()
        self.prop_device = IsUsableNonActivable()

    def use_with(self, patient_obj: EnvObject) -> tuple[bool, str]:
        """Chop the thing."""
        return do_chop(patient_obj)

    def referents(self) -> FrozenSet[str]:
        """Return the names that a command may use."""
        return FrozenSet.of("axe", self.name, self.descript_name())

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Describe the axe."""
        return f"an {self.descript_name()}"


class Thermometer(Device):
    """A thermometer, which shows its own temperature until it is used on a thing."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.name = "thermometer"
        self.prop_material = GlassProp()
        self.prop_container = IsNotContainer()
        self.prop_device = IsUsable()

    def device_reading(self, obj: EnvObject) -> str | None:
        """Return the temperature of the object, or None if it has none."""
        if obj.prop_material is None:
            return None
        return f"{whole_number_text(obj.prop_material.temperature_c)} degrees celsius"

    def use_with(self, patient_obj: EnvObject) -> tuple[bool, str]:
        """Measure the thing."""
        reading = self.device_reading(patient_obj)
        if reading is None:
            return (
                True,
                "That thing doesn't appear to have a temperature that the thermometer can read. ",
            )
        return True, f"the thermometer measures a temperature of {reading}"

    def referents(self) -> FrozenSet[str]:
        """Return the names that a command may use."""
        return FrozenSet.of("thermometer", self.name, self.descript_name())

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Describe the thermometer with its own temperature."""
        reading = self.device_reading(self)
        if reading is None:
            return f"a {self.descript_name()}"
        return f"a {self.descript_name()}, currently reading a temperature of {reading}"


class StopWatch(Device):
    """A watch that counts ticks while it is on, and then shows the last count."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.name = "stopwatch"
        self.prop_container = IsNotContainer()
        self.stopwatch_cur_time = 0
        self.stopwatch_user_time = 0

    def tick(self) -> bool:
        """Count."""
        if self.is_on:
            self.stopwatch_cur_time += 1
            self.stopwatch_user_time = self.stopwatch_cur_time
        elif self.prop_device is not None:
            self.stopwatch_cur_time = 0
        return super().tick()

    def referents(self) -> FrozenSet[str]:
        """Return the names that a command may use."""
        return FrozenSet.of("stopwatch", "watch", "timer", self.name, self.descript_name())

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Describe the watch, in a close look with the ticks it shows."""
        state = "activated" if self.is_on else "deactivated"
        told = f"a {self.descript_name()}, which is {state}. "
        if mode == MODE_DETAILED:
            return f"{told}The time reads {self.stopwatch_user_time} ticks."
        return told
