"""Goals about devices that are on or off."""

from __future__ import annotations

from typing import Any

from agentgyms.envs.scienceworld.own.goals.base import (
    UNSUCCESSFUL,
    FocusGoal,
    GoalReturn,
    Memory,
    Sight,
    SightGoal,
    when,
)
from agentgyms.envs.scienceworld.own.objects.base import EnvObject


class GoalActivateDevice(FocusGoal):
    """The focus is a device with a name, and on."""

    __slots__ = ("name",)

    def __init__(self, name: str, description: str) -> None:
        super().__init__(description)
        self.name = name

    def judge(self, focus: EnvObject, sight: Sight, goals: Memory) -> GoalReturn:
        """Tell whether the focus is on."""
        if focus.prop_device is None or focus.name != self.name:
            return UNSUCCESSFUL
        return when(focus.prop_device.is_activated)


class _DeviceWithName(SightGoal):
    __slots__ = ("name",)

    wanted = True

    def __init__(self, name: str, description: str, **common: Any) -> None:
        super().__init__(description, **common)
        self.name = name.lower()

    def seen(self, location: EnvObject, sight: Sight, goals: Memory) -> bool:
        return any(
            obj.prop_device is not None and obj.prop_device.is_activated == self.wanted
            for obj in sight.named(self.name)
        )


class GoalActivateDeviceWithName(_DeviceWithName):
    """A device with a name is on in the location."""

    __slots__ = ()


class GoalDeactivateDeviceWithName(_DeviceWithName):
    """A device with a name is off in the location."""

    __slots__ = ()

    wanted = False
