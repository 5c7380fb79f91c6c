"""The class of all objects of the game, and of their electrical terminals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from agentgyms.envs.scienceworld.own.objects.tree import TreeNode
from agentgyms.envs.scienceworld.own.properties.electrical import ElectricalConnectionProperties
from agentgyms.envs.scienceworld.own.properties.simple import MoveableProperties
from agentgyms.envs.scienceworld.own.sets import FrozenSet, MutableSet

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.properties.material import MaterialProperties
    from agentgyms.envs.scienceworld.own.properties.portal import PortalProperties
    from agentgyms.envs.scienceworld.own.properties.simple import (
        CoolingSourceProperties,
        DeviceProperties,
        EdibilityProperties,
        HeatSourceProperties,
    )
    from agentgyms.envs.scienceworld.own.world import World

MODE_CURSORY_DETAIL: Final = 0
MODE_DETAILED: Final = 1

ROLE_VOLTAGE_GENERATOR: Final = 1
ROLE_VOLTAGE_USER: Final = 2
ROLE_VOLTAGE_SWITCH: Final = 3
VOLTAGE_GROUND: Final = 0.0
VOLTAGE_GENERATOR: Final = 9.0

MOVABLE: Final = MoveableProperties(is_movable=True)
FIXED: Final = MoveableProperties(is_movable=False)

Objects = tuple["EnvObject", ...]
"""An immutable set of objects in Scala's order; `sets.union` joins two."""


class EnvObject(TreeNode["EnvObject"]):
    """A thing, place or being; the class holds the defaults, so that objects take little memory."""

    deleted = False
    electrical_role = ROLE_VOLTAGE_USER
    terminal1: Terminal | None = None
    terminal2: Terminal | None = None

    prop_material: MaterialProperties | None = None
    prop_edibility: EdibilityProperties | None = None
    prop_device: DeviceProperties | None = None
    prop_heat_source: HeatSourceProperties | None = None
    prop_cooling_source: CoolingSourceProperties | None = None
    prop_portal: PortalProperties[EnvObject] | None = None
    prop_moveable: MoveableProperties | None = MOVABLE
    prop_electrical_connection: ElectricalConnectionProperties[EnvObject] | None = None
    prop_life: Any = None
    prop_chromosome_pairs: Any = None
    prop_pollination: Any = None

    _hidden = False
    _turn = 0
    is_electrical_component: ClassVar[bool] = False
    ticks: ClassVar[bool] = True
    """Whether time changes the object, or anything in it."""

    def __init__(
        self,
        world: World,
        name: str = "",
        obj_type: str = "",
        include_electrical_terminals: bool = True,
    ) -> None:
        self.world = world
        self.name = name
        self.obj_type = obj_type
        if include_electrical_terminals:
            self.terminal1 = Terminal(world, self, "terminal 1")
            self.terminal2 = Terminal(world, self, "terminal 2")
            for terminal in (self.terminal1, self.terminal2):
                terminal.set_hidden(True)
                self.add_object(terminal)
        self.uuid = world.next_id()  # after those of the terminals, as in the engine

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.uuid})"

    # --- names ---

    def is_hidden(self) -> bool:
        """Tell whether the object is left out of what one sees."""
        return self._hidden

    def set_hidden(self, value: bool) -> None:
        """Hide the object, or show it."""
        self._hidden = value

    def descript_name(self, override_name: str = "") -> str:
        """Return the name, or another, and whether the object burns or has burned."""
        name = override_name or self.name
        material = self.prop_material
        if material is None:
            return name
        if material.is_combusting:
            return name + " (on fire)"
        return "burned " + name if material.has_combusted else name

    def referents(self) -> FrozenSet[str]:
        """Return the words that mean this object."""
        return MutableSet(("object", self.name, self.descript_name())).frozen()

    def referents_from(self, perspective_container: EnvObject) -> FrozenSet[str]:
        """Return the words that mean this object where one stands; portals look at the place."""
        return self.referents()

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Return the text that describes the object."""
        return f"An object, called {self.descript_name()}, of type {self.obj_type}"

    def description_safe(self, mode: int = MODE_CURSORY_DETAIL) -> str | None:
        """Return the text that describes the object, or None for a hidden one."""
        return None if self.is_hidden() else self.description(mode)

    # --- end of existence ---

    def delete(self, expel_contents: bool = False) -> None:
        """Take the object out of the game; `expel_contents` leaves what was in it there."""
        container = self._container
        if expel_contents and container is not None:
            self.move_all_contained_objects(container)  # the hidden terminals, too
        self.disconnect_electrical_terminals()
        self.remove_and_reset_container()
        self.name += " (deleted)"
        self.deleted = True

    # --- electricity ---

    def reachable_terminals(self, include_hidden: bool) -> Objects:
        """Return the terminals that one reaches when one reaches the object."""
        if include_hidden and self.terminal1 is not None and self.terminal2 is not None:
            return (self.terminal1, self.terminal2)
        return ()

    def is_electrically_connected(self) -> bool:
        """Tell whether anything is connected to the object."""
        return any(
            terminal.connections() for terminal in (self.terminal1, self.terminal2) if terminal
        )

    def has_unpolarized_electrical_terminals(self) -> bool:
        """Tell whether the object has two terminals without signs."""
        return self.terminal1 is not None and self.terminal2 is not None

    def other_electrical_terminal(self, terminal_in: EnvObject) -> Terminal | None:
        """Return the terminal that current which enters at one leaves by."""
        if self.terminal1 is None or self.terminal2 is None:
            return None
        if terminal_in is self.terminal1:
            return self.terminal2
        return self.terminal1 if terminal_in is self.terminal2 else None

    def unconnected_electrical_terminal(self) -> Terminal | None:
        """Return the first terminal that nothing is connected to."""
        if self.terminal1 is None or self.terminal2 is None:
            return None
        if not self.terminal1.connections():
            return self.terminal1
        return None if self.terminal2.connections() else self.terminal2

    def disconnect_electrical_terminals(self) -> None:
        """Disconnect all that is connected to the object."""
        for terminal in (self.terminal1, self.terminal2):
            if terminal is not None:
                terminal.disconnect()

    def first_terminal(self) -> Terminal | None:
        """Return the terminal at which a search of the circuit starts."""
        return self.terminal1

    def ground_through(self, entered: Terminal, max_steps: int) -> bool | None:
        """Tell whether a terminal leads to the ground through this object; None: look further.

        A False ends the search of the terminal that asks, as in the engine.
        """
        material = self.prop_material
        if material is None or not material.electrically_conductive:
            return False
        return self._ground_behind(entered, max_steps)

    def _ground_behind(self, entered: Terminal, max_steps: int) -> bool | None:
        other = self.other_electrical_terminal(entered)
        if other is None:
            return False
        return True if max_steps > 0 and other.connects_to_ground(max_steps - 1) else None

    # --- use and fire ---

    def use_with(self, patient_obj: EnvObject) -> tuple[bool, str]:
        """Use this device on something; return whether that works, and the text."""
        return (False, "")

    def is_on_fire(self) -> bool:
        """Tell whether the object burns."""
        return self.prop_material is not None and self.prop_material.is_combusting

    # --- time ---

    def was_tick_processed(self) -> bool:
        """Tell whether the turn's time has passed for the object."""
        return self._turn == self.world.turn

    def clear_tick_processed_recursive(self) -> None:
        """Start a turn, whose time has yet to pass for all objects; asked of the root only."""
        self.world.turn += 1

    def ticking_objects(self) -> Objects:
        """Return what is in this object and can change with time: all but terminals."""
        ticking = self._ticking
        if ticking is None:
            ticking = tuple(obj for obj in self.contained_objects() if obj.ticks)
            self._ticking = ticking
        return ticking

    def tick(self) -> bool:
        """Let the turn's time pass for the object and all in it, once; tell whether it did."""
        turn = self.world.turn
        if self._turn == turn:
            return False
        for obj in self.world.pass_time(self):
            obj.tick()
        if self._portals is not None:
            for portal in self._portals.items():
                portal.tick()
        self._turn = turn
        return True


class Terminal(EnvObject):
    """A point of an object that wires go to."""

    ticks = False  # it has no material, and nothing is ever in it
    prop_moveable = FIXED
    voltage: float | None = None
    prop_electrical_connection: ElectricalConnectionProperties[EnvObject]

    def __init__(self, world: World, parent_object: EnvObject, name: str = "terminal") -> None:
        super().__init__(world, name, include_electrical_terminals=False)
        self.parent_object = parent_object
        self.prop_electrical_connection = ElectricalConnectionProperties()

    def is_idle(self) -> bool:
        """Tell whether the terminal has neither a connection nor a voltage."""
        return self.voltage is None and not self.prop_electrical_connection.connected_to

    def connections(self) -> Objects:
        """Return what the terminal is connected to."""
        return self.prop_electrical_connection.connections()

    def disconnect(self) -> None:
        """Disconnect the terminal on both sides."""
        for other in self.connections():
            self.prop_electrical_connection.remove_connection(other)
            if other.prop_electrical_connection is not None:
                other.prop_electrical_connection.remove_connection(self)

    def connects_to_voltage(self) -> bool:
        """Tell whether a neighbour has the voltage of a generator."""
        return any(
            isinstance(other, Terminal) and other.voltage == VOLTAGE_GENERATOR
            for other in self.connections()
        )

    def connects_to_ground(self, max_steps: int = 10) -> bool:
        """Tell whether current from here ends in the ground of a generator."""
        for other in self.connections():
            if isinstance(other, Terminal):
                found = other.parent_object.ground_through(other, max_steps)
                if found is not None:
                    return found
        return False

    def referents(self) -> FrozenSet[str]:
        """Return the words that mean this terminal."""
        parent, shown = self.parent_object.name, self.descript_name()
        words = (self.name, f"{self.name} on {parent}", f"{parent} {self.name}")
        return FrozenSet(("terminal", *words, shown, f"{shown} on {parent}"))

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Return the text that describes the terminal."""
        if mode == MODE_DETAILED:
            ends = self.prop_electrical_connection.connected_to_str()
            return f"a {self.descript_name()}.  it is connected to: {ends}. "
        return f"a {self.descript_name()} on {self.parent_object.name}"
