"""The goals of one who heats a thing."""

from __future__ import annotations

from typing import Final

from agentgyms.envs.scienceworld.own.goals.base import Goal
from agentgyms.envs.scienceworld.own.goals.contents import (
    GoalObjectInContainer,
    GoalSpecificObjectInDirectContainer,
)
from agentgyms.envs.scienceworld.own.goals.devices import GoalActivateDeviceWithName
from agentgyms.envs.scienceworld.own.goals.matter import GoalTemperatureOnFire

_HEATERS: Final = ("stove", "blast furnace", "oven", "hot plate")


def heater_goals(thing: str, *prerequisites: str) -> list[Goal]:
    """Return the goals of one who heats a thing: a device on, a fire, and the focus there."""
    out: list[Goal] = [
        GoalActivateDeviceWithName(name, f"activate heater ({name})") for name in _HEATERS
    ]
    out += [
        GoalSpecificObjectInDirectContainer("inventory", "lighter", "have lighter in inventory"),
        GoalSpecificObjectInDirectContainer(
            "fire pit", "wood", "move wood into fire pit", key="wood1"
        ),
        GoalTemperatureOnFire("wood", "ignite wood", key="ignite", prerequisites=("wood1",)),
    ]
    out += [
        GoalObjectInContainer(name, f"have {thing} on heater ({name})", prerequisites=prerequisites)
        for name in (*_HEATERS, "fire pit")
    ]
    return out
