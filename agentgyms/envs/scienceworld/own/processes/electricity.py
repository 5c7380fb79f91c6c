"""Current through objects that have two terminals."""

from __future__ import annotations

from agentgyms.envs.scienceworld.own.jvm import JavaError
from agentgyms.envs.scienceworld.own.objects.base import (
    ROLE_VOLTAGE_USER,
    VOLTAGE_GENERATOR,
    EnvObject,
    Terminal,
)

_MAX_PARTS = 10


def unpolarized_electrical_conductivity_tick(
    obj: EnvObject, activate_device_if_powered: bool = False
) -> None:
    """Charge a terminal of an object whose other side leads to the ground, or clear both."""
    first, second = obj.terminal1, obj.terminal2
    if first is None or second is None:
        return
    material = obj.prop_material
    if not obj.is_electrical_component and not (
        material is not None and material.electrically_conductive
    ):
        if first.voltage is not None or second.voltage is not None:
            first.voltage = second.voltage = None
        return
    if obj.electrical_role == ROLE_VOLTAGE_USER:
        _charge(obj, first, second, activate_device_if_powered)


def _charge(obj: EnvObject, first: Terminal, second: Terminal, activate: bool) -> None:
    device = obj.prop_device
    if activate:
        assert device is not None
        device.is_activated = False
    if first.connects_to_ground() and second.connects_to_voltage():
        first.voltage = VOLTAGE_GENERATOR
    elif second.connects_to_ground() and first.connects_to_voltage():
        second.voltage = VOLTAGE_GENERATOR
    else:
        return
    if activate:
        assert device is not None
        device.is_activated = True


def are_components_electrically_connected(part1: EnvObject, part2: EnvObject | str) -> bool:
    """Tell whether connections lead from a part to another one, or to one with a name.

    The search starts at one side only, as the engine's does.
    """
    if isinstance(part2, str):
        terminal = part1.first_terminal()
        return terminal is not None and _reaches_name(part1, terminal, part2, _MAX_PARTS)
    if part1.terminal1 is None:
        return False
    return _reaches(part1, part1.terminal1, part2, set())


def _neighbours(part: EnvObject, terminal: Terminal) -> list[Terminal]:
    """Return the terminals on the far side of a part."""
    other = part.other_electrical_terminal(terminal)
    if other is None:
        raise JavaError("java.util.NoSuchElementException: None.get")
    return [end for end in other.connections() if isinstance(end, Terminal)]


def _reaches(part: EnvObject, terminal: Terminal, sought: EnvObject, seen: set[int]) -> bool:
    if terminal.uuid in seen:
        raise JavaError("java.lang.StackOverflowError")  # the engine goes round in a ring
    seen.add(terminal.uuid)
    ends = _neighbours(part, terminal)
    if any(end.parent_object is sought for end in ends):
        return True
    for end in ends:
        # The engine goes back through the terminal that it came by.
        other = end.parent_object.other_electrical_terminal(end)
        if other is not None and _reaches(end.parent_object, other, sought, seen):
            return True
    return False


def _reaches_name(part: EnvObject, terminal: Terminal, name: str, left: int) -> bool:
    if left <= 0:
        return False
    ends = _neighbours(part, terminal)
    if any(end.parent_object.name == name for end in ends):
        return True
    return any(_reaches_name(end.parent_object, end, name, left - 1) for end in ends)
