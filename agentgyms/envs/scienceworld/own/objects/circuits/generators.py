"""The sources of voltage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgyms.envs.scienceworld.own.objects.base import (
    MODE_CURSORY_DETAIL,
    MODE_DETAILED,
    ROLE_VOLTAGE_GENERATOR,
    VOLTAGE_GENERATOR,
    VOLTAGE_GROUND,
    Terminal,
)
from agentgyms.envs.scienceworld.own.objects.circuits.components import PolarizedElectricalComponent
from agentgyms.envs.scienceworld.own.properties.simple import (
    IsActivableDeviceOff,
    IsActivableDeviceOn,
    IsNotActivableDeviceOff,
    IsNotActivableDeviceOn,
)

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.world import World

_MOST_CONTAINERS = 10


class Generator(PolarizedElectricalComponent):
    """A source of voltage."""

    words = ("generator",)
    electrical_role = ROLE_VOLTAGE_GENERATOR

    def __init__(self, world: World, display_on_off: bool = True) -> None:
        super().__init__(world)
        self.name = "generator"
        self.prop_device = IsActivableDeviceOn()
        self.display_on_off = display_on_off

    def ground_through(self, entered: Terminal, max_steps: int) -> bool | None:
        """Tell whether the terminal is the ground; no search goes through a generator."""
        return entered.voltage == VOLTAGE_GROUND

    def tick(self) -> bool:
        """Let the turn's time pass: a generator that is on charges its terminals."""
        running = self.prop_device.is_activated
        self.anode.voltage = VOLTAGE_GENERATOR if running else None
        self.cathode.voltage = VOLTAGE_GROUND if running else None
        return super().tick()

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Return the text that describes the generator."""
        if self.display_on_off:
            return super().description(mode)
        text = f"a {self.descript_name()}"
        return f"{text}. {self.ends()}" if mode == MODE_DETAILED else text


class Battery(Generator):
    """A battery, which is always on."""

    def __init__(self, world: World) -> None:
        super().__init__(world, display_on_off=False)
        self.name = "battery"
        self.prop_device = IsNotActivableDeviceOn()


class GasGenerator(Generator):
    """A generator that burns gas."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.name = "gas generator"
        self.prop_device = IsActivableDeviceOff()


class NuclearGenerator(Generator):
    """A generator that splits atoms."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.name = "nuclear generator"
        self.prop_device = IsActivableDeviceOff()


class RenewableOutdoorGenerator(Generator):
    """A generator that is on where there is sun and wind."""

    def __init__(self, world: World, name: str = "renewable generator") -> None:
        super().__init__(world)
        self.name = name
        self.prop_device = IsNotActivableDeviceOff()

    def tick(self) -> bool:
        """Let the turn's time pass: the generator is on outside, in open containers as well."""
        self.prop_device.is_activated = self._is_outside()
        return super().tick()

    def _is_outside(self) -> bool:
        from agentgyms.envs.scienceworld.own.objects.locations import Outside

        container = self.container()
        for _ in range(_MOST_CONTAINERS):
            if container is None or isinstance(container, Outside):
                return container is not None
            if container.prop_container is None or not container.prop_container.is_open:
                return False
            container = container.container()
        return False


class SolarPanel(RenewableOutdoorGenerator):
    """A solar panel."""

    def __init__(self, world: World) -> None:
        super().__init__(world, "solar panel")


class WindGenerator(RenewableOutdoorGenerator):
    """A wind generator."""

    def __init__(self, world: World) -> None:
        super().__init__(world, "wind generator")
