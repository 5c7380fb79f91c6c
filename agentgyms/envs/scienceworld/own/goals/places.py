"""Goals about where the agent is, and what is there."""

from __future__ import annotations

from typing import Any

from agentgyms.envs.scienceworld.own.goals.base import Memory, Sight, SightGoal
from agentgyms.envs.scienceworld.own.objects.base import EnvObject
from agentgyms.envs.scienceworld.own.objects.portals import Door


class GoalMoveToLocation(SightGoal):
    """The agent is in a location."""

    __slots__ = ("place",)

    def __init__(self, place: str, description: str, **common: Any) -> None:
        super().__init__(description, **common)
        self.place = place

    def seen(self, location: EnvObject, sight: Sight, goals: Memory) -> bool:
        """Compare the name of the location."""
        return location.name == self.place


class GoalMoveToNewLocation(SightGoal):
    """The agent is somewhere else than at first, or in a location where it need not move."""

    __slots__ = ("starting_location", "unless")

    def __init__(self, description: str, unless: str = "") -> None:
        """Set the name of the location that counts at once."""
        super().__init__(description)
        self.unless = unless
        self.starting_location: str | None = None

    def seen(self, location: EnvObject, sight: Sight, goals: Memory) -> bool:
        """Keep the first location, and compare later ones with it."""
        if location.name == self.unless:
            return True
        if self.starting_location is None:
            goals.stored_values["startingLocation"] = location.name
            self.starting_location = location.name
            return False
        return location.name != self.starting_location


class GoalInRoomWithOpenDoor(SightGoal):
    """The agent is in a location with an open door."""

    __slots__ = ()

    def seen(self, location: EnvObject, sight: Sight, goals: Memory) -> bool:
        """Look for an open door."""
        found = False
        for portal in location.portals():
            if not isinstance(portal, Door):
                raise TypeError(f"scala.MatchError: {portal.name}")  # the engine knows doors only
            found = found or portal.is_currently_passable()
        return found


class GoalInRoomWithObject(SightGoal):
    """The agent is in a location with an object."""

    __slots__ = ("name",)

    def __init__(self, name: str, description: str, **common: Any) -> None:
        super().__init__(description, **common)
        self.name = name

    def seen(self, location: EnvObject, sight: Sight, goals: Memory) -> bool:
        """Look for the object."""
        lower = self.name.lower()
        found = sight.named(lower)
        if lower == self.name:
            return bool(found)
        # The engine forgets to lower the name before it compares the one with a description.
        return any(obj.name.lower() == lower for obj in found)


class GoalStayInLocation(SightGoal):
    """The agent has stayed in a location; each check there counts, not each move."""

    __slots__ = ("num_ticks_in_location", "place", "steps")

    def __init__(self, place: str, steps: int, description: str) -> None:
        super().__init__(description)
        self.place = place
        self.steps = steps
        self.num_ticks_in_location = 0

    def seen(self, location: EnvObject, sight: Sight, goals: Memory) -> bool:
        """Count the checks in the location; others start the count again."""
        if location.name != self.place:
            self.num_ticks_in_location = 0
            return False
        self.num_ticks_in_location += 1
        return self.num_ticks_in_location >= self.steps
