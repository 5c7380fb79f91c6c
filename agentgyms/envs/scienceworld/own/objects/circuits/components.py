"""The two kinds of parts of circuits, and their terminals."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from agentgyms.envs.scienceworld.own.objects.base import (
    MODE_CURSORY_DETAIL,
    MODE_DETAILED,
    ROLE_VOLTAGE_USER,
    VOLTAGE_GENERATOR,
    EnvObject,
    Terminal,
)
from agentgyms.envs.scienceworld.own.processes.electricity import (
    unpolarized_electrical_conductivity_tick,
)
from agentgyms.envs.scienceworld.own.properties.simple import (
    DeviceProperties,
    IsNotActivableDeviceOff,
)
from agentgyms.envs.scienceworld.own.sets import FrozenSet

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.objects.base import Objects
    from agentgyms.envs.scienceworld.own.world import World


class Anode(Terminal):
    """The terminal of a polarized part that is called anode."""

    def __init__(self, world: World, parent_object: EnvObject) -> None:
        super().__init__(world, parent_object, "anode")


class Cathode(Terminal):
    """The terminal of a polarized part that is called cathode."""

    def __init__(self, world: World, parent_object: EnvObject) -> None:
        super().__init__(world, parent_object, "cathode")


class PolarizedElectricalComponent(EnvObject):
    """A part with an anode and a cathode."""

    is_electrical_component = True
    prop_device: DeviceProperties
    words: ClassVar[tuple[str, ...]] = ("component",)
    """The words for the part besides its name."""
    shows_state: ClassVar[bool] = True
    """Whether the text tells that the part is on or off."""

    def __init__(self, world: World) -> None:
        super().__init__(world, "component", include_electrical_terminals=False)
        self.prop_device = IsNotActivableDeviceOff()
        self.anode = Anode(world, self)
        self.cathode = Cathode(world, self)
        self.add_object(self.anode)
        self.add_object(self.cathode)

    def first_terminal(self) -> Terminal:
        """Return the terminal at which a search of the circuit starts."""
        return self.anode

    def reachable_terminals(self, include_hidden: bool) -> Objects:
        """Return the terminals that one reaches when one reaches the part."""
        return (self.anode, self.cathode)

    def is_electrically_connected(self) -> bool:
        """Tell whether anything is connected to the part."""
        return bool(self.anode.connections() or self.cathode.connections())

    def other_electrical_terminal(self, terminal_in: EnvObject) -> Terminal | None:
        """Return the terminal that current which enters at one leaves by."""
        if terminal_in is self.anode:
            return self.cathode
        return self.anode if terminal_in is self.cathode else None

    def disconnect_electrical_terminals(self) -> None:
        """Disconnect all that is connected to the part."""
        self.anode.disconnect()
        self.cathode.disconnect()

    def ground_through(self, entered: Terminal, max_steps: int) -> bool | None:
        """Tell whether a terminal leads to the ground through this part; None: look further."""
        return self._ground_behind(entered, max_steps)

    def tick(self) -> bool:
        """Let the turn's time pass: a part that uses current is on while it has some."""
        if self.electrical_role == ROLE_VOLTAGE_USER:
            self.prop_device.is_activated = False
            if self.anode.connects_to_ground() and self.cathode.connects_to_voltage():
                self.anode.voltage = VOLTAGE_GENERATOR
                self.prop_device.is_activated = True
        return super().tick()

    def referents(self) -> FrozenSet[str]:
        """Return the words that mean this part."""
        return FrozenSet((*self.words, self.name, self.descript_name()))

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Return the text that describes the part."""
        text = f"a {self.descript_name()}"
        if self.shows_state:
            text += f", which is {'on' if self.prop_device.is_activated else 'off'}"
        if mode == MODE_DETAILED:
            text += f". {self.ends()}"
        return text

    def ends(self) -> str:
        """Return the text that tells what the terminals are connected to."""
        anode = self.anode.prop_electrical_connection.connected_to_str()
        cathode = self.cathode.prop_electrical_connection.connected_to_str()
        return f"its anode is connected to: {anode}. its cathode is connected to: {cathode}. "


class UnpolarizedElectricalComponent(EnvObject):
    """A part with two terminals that are alike and visible."""

    is_electrical_component = True
    prop_device: DeviceProperties
    terminal1: Terminal
    terminal2: Terminal

    def __init__(self, world: World) -> None:
        super().__init__(world, "component")
        self.name = "component"
        self.prop_device = IsNotActivableDeviceOff()
        self.terminal1.set_hidden(False)
        self.terminal2.set_hidden(False)

    def reachable_terminals(self, include_hidden: bool) -> Objects:
        """Return the terminals that one reaches when one reaches the part."""
        return (self.terminal1, self.terminal2)

    def ground_through(self, entered: Terminal, max_steps: int) -> bool | None:
        """Tell whether a terminal leads to the ground through this part; None: look further."""
        return self._ground_behind(entered, max_steps)

    def tick(self) -> bool:
        """Let the turn's time pass, after the part has been charged."""
        unpolarized_electrical_conductivity_tick(self, activate_device_if_powered=True)
        return super().tick()

    def referents(self) -> FrozenSet[str]:
        """Return the words that mean this part."""
        return FrozenSet(("component", self.name, self.descript_name()))

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Return the text that describes the part."""
        text = f"a {self.descript_name()}"
        if mode == MODE_DETAILED:  # the engine has no space or point between the two
            ends = [
                terminal.prop_electrical_connection.connected_to_str()
                for terminal in (self.terminal1, self.terminal2)
            ]
            text += f"its terminal 1 is connected to: {ends[0]}. "
            text += f"its terminal 2 is connected to: {ends[1]}. "
        return text
