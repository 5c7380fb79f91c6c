"""Goals about what is in which thing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agentgyms.envs.scienceworld.own.goals.base import (
    FAILURE,
    GoalReturn,
    Memory,
    NamedSightGoal,
    SameFocusGoal,
    Sight,
    SightGoal,
    when,
)
from agentgyms.envs.scienceworld.own.objects.base import EnvObject

_MAX_STEPS = 20


def _holders(obj: EnvObject) -> Iterator[EnvObject]:
    """Go through the things that an object is in, from the nearest on; the engine stops at 20."""
    holder = obj.container()
    for _ in range(_MAX_STEPS):
        if holder is None:
            return
        yield holder
        holder = holder.container()


class _InContainer(SameFocusGoal):
    __slots__ = ("failures", "name")

    def __init__(
        self, name: str, description: str, failures: tuple[str, ...] = (), **common: Any
    ) -> None:
        super().__init__(description, **common)
        self.name = name.lower()
        self.failures = failures

    def judge(self, focus: EnvObject, sight: Sight, goals: Memory) -> GoalReturn:
        names = [holder.name for holder in _holders(focus)]
        if any(name in self.failures for name in names):
            return FAILURE
        return when(any(name.lower() == self.name for name in names))


class GoalObjectInContainer(_InContainer):
    """The focus is in a thing, or in something in it."""

    __slots__ = ()


class GoalObjectInContainerByName(_InContainer):
    """The focus is in a thing, or in something in it; some things fail the task."""

    __slots__ = ()


class GoalObjectsInSingleContainer(SightGoal):
    """Things lie alone in one container."""

    __slots__ = ("names",)

    def __init__(self, names: tuple[str, ...], description: str) -> None:
        super().__init__(description)
        self.names = names

    def seen(self, location: EnvObject, sight: Sight, goals: Memory) -> bool:
        """Look for a container with as many things, each with one of the names."""
        return any(self._alone_in(obj) for obj in sight.objects())

    def _alone_in(self, obj: EnvObject) -> bool:
        contents = obj.contained_objects(include_hidden=False)
        return len(contents) == len(self.names) and all(
            each.name in self.names or each.descript_name() in self.names for each in contents
        )


class GoalSpecificObjectInDirectContainer(SightGoal):
    """A thing with one of some names lies in a container with a name."""

    __slots__ = ("name", "valid")

    def __init__(self, name: str, valid: str, description: str, **common: Any) -> None:
        """Set the names of the container and of the thing."""
        super().__init__(description, **common)
        self.name = name.lower()
        self.valid = valid

    def seen(self, location: EnvObject, sight: Sight, goals: Memory) -> bool:
        """Look into all containers with the name."""
        return any(
            self.valid in (each.name, each.descript_name())
            for obj in sight.named(self.name)
            for each in obj.contained_objects(include_hidden=False)
        )


class GoalContainerOpen(NamedSightGoal):
    """A container with a name is open."""

    __slots__ = ()

    def seen(self, location: EnvObject, sight: Sight, goals: Memory) -> bool:
        """Look at all containers with the name."""
        return any(
            obj.prop_container is not None and obj.prop_container.is_open
            for obj in sight.named(self.name)
        )
