"""Goals about electric circuits."""

from __future__ import annotations

from collections.abc import Iterator

from agentgyms.envs.scienceworld.own.goals.base import (
    FAILURE,
    SUCCESS,
    GoalReturn,
    Memory,
    SameFocusGoal,
    Sight,
    SightGoal,
)
from agentgyms.envs.scienceworld.own.objects.base import EnvObject
from agentgyms.envs.scienceworld.own.objects.circuits.parts import (
    Generator,
    LightBulb,
    PolarizedElectricalComponent,
    Terminal,
    Wire,
)
from agentgyms.envs.scienceworld.own.processes.electricity import (
    are_components_electrically_connected,
)


def _joined(terminal: Terminal | None) -> Iterator[EnvObject]:
    """Go through the parts whose terminals a terminal is connected to."""
    if terminal is None:
        return
    connection = terminal.prop_electrical_connection
    assert connection is not None, "each terminal has one"
    for other in connection.connections():
        if isinstance(other, Terminal):
            yield other.parent_object


def _is_called(obj: EnvObject, name: str) -> bool:
    return name in (obj.name.lower(), obj.descript_name().lower())


class GoalElectricallyConnected(SameFocusGoal):
    """The focus is connected to a part; else the task fails."""

    __slots__ = ("name",)

    def __init__(self, name: str, description: str) -> None:
        super().__init__(description)
        self.name = name

    def judge(self, focus: EnvObject, sight: Sight, goals: Memory) -> GoalReturn:
        """Follow the circuit from the focus."""
        return SUCCESS if are_components_electrically_connected(focus, self.name) else FAILURE


class GoalObjectConnectedToWire(SightGoal):
    """A wire is connected to the first or the second end of a part."""

    __slots__ = ("first", "name")

    def __init__(self, name: str, description: str, *, first: bool) -> None:
        """Set the name of the part, and which end: the first is terminal 1, or the anode."""
        super().__init__(description)
        self.name = name.lower()
        self.first = first

    def seen(self, location: EnvObject, sight: Sight, goals: Memory) -> bool:
        """Look at that end of all parts with the name."""
        return any(
            isinstance(part, Wire)
            for obj in sight.named(self.name)
            for part in _joined(self._end(obj))
        )

    def _end(self, obj: EnvObject) -> Terminal | None:
        if isinstance(obj, PolarizedElectricalComponent):
            return obj.anode if self.first else obj.cathode
        return obj.terminal1 if self.first else obj.terminal2


class _WireConnects(SightGoal):
    """A goal that one wire reaches which is connected to two things."""

    __slots__ = ()

    def seen(self, location: EnvObject, sight: Sight, goals: Memory) -> bool:
        return any(self._connects(obj) for obj in sight.objects() if isinstance(obj, Wire))

    def _connects(self, wire: Wire) -> bool:
        parts = [*_joined(wire.terminal1), *_joined(wire.terminal2)]
        return any(map(self.is_one, parts)) and any(map(self.is_other, parts))

    def is_one(self, part: EnvObject) -> bool:
        raise NotImplementedError

    def is_other(self, part: EnvObject) -> bool:
        raise NotImplementedError


class GoalWireConnectsObjectAndAnyPowerSource(_WireConnects):
    """A wire connects a part and a source of power, which may be one with a name."""

    __slots__ = ("name", "source")

    def __init__(self, name: str, description: str, source: str = "") -> None:
        """Set the names of the part and of the source, or "" for any."""
        super().__init__(description)
        self.name = name.lower()
        self.source = source.lower()

    def is_one(self, part: EnvObject) -> bool:
        """Tell whether it is the part."""
        return _is_called(part, self.name)

    def is_other(self, part: EnvObject) -> bool:
        """Tell whether it is the source."""
        named = self.source == "" or _is_called(part, self.source)
        return isinstance(part, Generator) and named


class GoalWireConnectsObjectAndAnyLightBulb(_WireConnects):
    """A wire connects a part and a light bulb."""

    __slots__ = ("name",)

    def __init__(self, name: str, description: str) -> None:
        super().__init__(description)
        self.name = name.lower()

    def is_one(self, part: EnvObject) -> bool:
        """Tell whether it is the part."""
        return _is_called(part, self.name)

    def is_other(self, part: EnvObject) -> bool:
        """Tell whether it is a light bulb."""
        return isinstance(part, LightBulb)


class GoalWireConnectsPowerSourceAndAnyLightBulb(_WireConnects):
    """A wire connects a source of power and a light bulb."""

    __slots__ = ()

    def is_one(self, part: EnvObject) -> bool:
        """Tell whether it is a source of power."""
        return isinstance(part, Generator)

    def is_other(self, part: EnvObject) -> bool:
        """Tell whether it is a light bulb."""
        return isinstance(part, LightBulb)
