"""The parts of circuits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgyms.envs.scienceworld.own.objects.base import (
    ROLE_VOLTAGE_SWITCH,
    EnvObject,
    Terminal,
)
from agentgyms.envs.scienceworld.own.objects.circuits.components import (
    Anode,
    Cathode,
    PolarizedElectricalComponent,
    UnpolarizedElectricalComponent,
)
from agentgyms.envs.scienceworld.own.objects.circuits.generators import (
    Battery,
    GasGenerator,
    Generator,
    NuclearGenerator,
    RenewableOutdoorGenerator,
    SolarPanel,
    WindGenerator,
)
from agentgyms.envs.scienceworld.own.properties.materials import MetalProp
from agentgyms.envs.scienceworld.own.properties.simple import IsActivableDeviceOff

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.world import World

__all__ = [
    "Anode",
    "Battery",
    "Cathode",
    "ElectricBuzzer",
    "ElectricMotor",
    "GasGenerator",
    "Generator",
    "LightBulb",
    "NuclearGenerator",
    "PolarizedElectricalComponent",
    "RenewableOutdoorGenerator",
    "SolarPanel",
    "Switch",
    "Terminal",
    "UnpolarizedElectricalComponent",
    "WindGenerator",
    "Wire",
]


class ElectricBuzzer(PolarizedElectricalComponent):
    """A buzzer."""

    words = ("buzzer", "electric buzzer")

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.name = "electric buzzer"


class ElectricMotor(PolarizedElectricalComponent):
    """A motor."""

    words = ("motor", "electric motor")

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.name = "electric motor"


class LightBulb(PolarizedElectricalComponent):
    """A light bulb of a colour."""

    words = ("light", "light bulb")

    def __init__(self, world: World, color: str = "") -> None:
        super().__init__(world)
        self.color = color
        self.name = f"{color} light bulb".strip()


class Switch(PolarizedElectricalComponent):
    """A switch, through which current flows while it is on."""

    electrical_role = ROLE_VOLTAGE_SWITCH

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.name = "switch"
        self.prop_device = IsActivableDeviceOff()

    def other_electrical_terminal(self, terminal_in: EnvObject) -> Terminal | None:
        """Return the terminal that current which enters at one leaves by, if any."""
        if not self.prop_device.is_activated:
            return None
        return super().other_electrical_terminal(terminal_in)


class Wire(UnpolarizedElectricalComponent):
    """A wire."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.name = "wire"
        self.prop_material = MetalProp()
