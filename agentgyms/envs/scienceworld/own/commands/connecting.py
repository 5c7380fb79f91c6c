"""Actions that connect and disconnect electrical parts."""

from __future__ import annotations

from agentgyms.envs.scienceworld.own.commands.actions import Action
from agentgyms.envs.scienceworld.own.commands.context import Context
from agentgyms.envs.scienceworld.own.objects.base import EnvObject, Terminal
from agentgyms.envs.scienceworld.own.objects.circuits.parts import (
    PolarizedElectricalComponent,
    UnpolarizedElectricalComponent,
)

_SPECIFY = (
    "Connections must specify specific points of contact on {} electrical components (e.g. {})"
)
_TAKEN = (
    "{} is already connected, and must be disconnected before it can be connected to something else"
)


class ActionConnectElectrical(Action):
    """Connect two electrical parts."""

    __slots__ = ()

    def run(self, context: Context) -> str:
        """Connect them."""
        first, refused = terminal_of(self.assignments["terminalA"])
        if first is None:
            return refused
        second, refused = terminal_of(self.assignments["terminalB"])
        if second is None:
            return refused
        if first is second:
            return "Something can't be connected to itself."
        for terminal in (first, second):
            if is_taken(terminal):
                return _TAKEN.format(_told(terminal))
        first.prop_electrical_connection.add_connection(second)
        second.prop_electrical_connection.add_connection(first)
        return f"{_told(first)} is now connected to {_told(second)}"


def terminal_of(obj: EnvObject) -> tuple[Terminal | None, str]:
    """Return the terminal that a wire to an object would go to; else None, and why."""
    if isinstance(obj, Terminal):
        return obj, ""
    if isinstance(obj, PolarizedElectricalComponent):
        return None, _SPECIFY.format("polarized", "anode, cathode")
    if isinstance(obj, UnpolarizedElectricalComponent):
        return None, _SPECIFY.format("unpolarized", "terminal 1, terminal 2")
    if not obj.has_unpolarized_electrical_terminals():
        return None, f"It's not clear how to connect something to {obj.name}"
    terminal = obj.unconnected_electrical_terminal()
    return terminal, "" if terminal is not None else _TAKEN.format(obj.name)


def is_taken(terminal: Terminal) -> bool:
    """Tell whether something is connected to a terminal already."""
    return terminal.prop_electrical_connection.is_at_max_connections()


def _told(terminal: Terminal) -> str:
    return f"{terminal.name} on {terminal.parent_object.name}"


class ActionDisconnectElectrical(Action):
    """Disconnect all wires of an object."""

    __slots__ = ()

    def run(self, context: Context) -> str:
        """Disconnect them."""
        obj = self.assignments["obj"]
        if isinstance(obj, Terminal):
            return (
                f"You must disconnect entire objects (such as {obj.parent_object.name}) instead of"
                " just single terminals"
            )
        obj.disconnect_electrical_terminals()
        return f"{obj.name} has been disconnected"
