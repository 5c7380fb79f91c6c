"""Portals between places: doors, and drains for liquids."""

from __future__ import annotations

from agentgyms.envs.scienceworld.own.objects.base import FIXED, MODE_CURSORY_DETAIL, EnvObject
from agentgyms.envs.scienceworld.own.properties.portal import PortalProperties
from agentgyms.envs.scienceworld.own.sets import FrozenSet
from agentgyms.envs.scienceworld.own.world import World


class Portal(EnvObject):
    """A way between two places, Scala's `connectsFrom` and `connectsTo`, told from one side."""

    def __init__(
        self, world: World, is_open: bool, connects_from: EnvObject, connects_to: EnvObject
    ) -> None:
        """Connect the two places; who wants the portal seen adds it to them."""
        super().__init__(world)
        self.from_end = connects_from
        self.to_end = connects_to
        self.prop_portal = PortalProperties(
            is_open=is_open,
            is_openable=True,
            connects_from=connects_from,
            connects_to=connects_to,
            is_lockable=False,
            is_locked=False,
        )
        self.prop_moveable = FIXED

    def open_closed_str(self) -> str:
        """Return "open" or "closed"."""
        return "open" if self.is_currently_passable() else "closed"

    def is_currently_passable(self) -> bool:
        """Return whether one can go through."""
        portal = self.prop_portal
        return portal is not None and portal.is_open

    def unpassable_error_message(self) -> str:
        """Return why one cannot go through, or that one can."""
        if self.is_currently_passable():
            return f"This {self.name} is passable."
        return f"The {self.name} is not open."

    def connects_to(self, perspective_container: EnvObject) -> EnvObject | None:
        """Return the place on the other side, or None if the container has neither."""
        if self._is_at(perspective_container, self.from_end, self.to_end):
            return self.to_end
        if self._is_at(perspective_container, self.to_end, self.from_end):
            return self.from_end
        return None

    def connects_from(self, perspective_container: EnvObject) -> EnvObject | None:
        """Return the place on this side, or None if the container has neither."""
        if self._is_at(perspective_container, self.from_end, self.to_end):
            return self.from_end
        if self._is_at(perspective_container, self.to_end, self.from_end):
            return self.to_end
        return None

    @staticmethod
    def _is_at(container: EnvObject, end: EnvObject, other: EnvObject) -> bool:
        """Return whether the container is this end, or has it and is not the other."""
        return container is end or (container is not other and container.contains(end))

    def connection_points(self) -> tuple[EnvObject, ...]:
        """Return both places."""
        return (self.from_end, self.to_end)

    def does_connect_to(self, location_name: str) -> bool:
        """Return whether a place of that name is at one of the ends."""
        wanted = location_name.strip().lower()
        return any(end.name.strip().lower() == wanted for end in self.connection_points())

    def referents(self) -> FrozenSet[str]:
        """Return the engine's mark of a place that was not told."""
        return FrozenSet.of("ERROR: SHOULD USE OVERRIDE FOR PORTAL.")

    def referents_from(self, perspective_container: EnvObject) -> FrozenSet[str]:
        """Return the names that a command may use, seen from a container."""
        name, there = self.name, self.connects_to(perspective_container)
        if there is not None:
            return FrozenSet.of(name, f"{name} to {there.name}", f"{there.name} {name}")
        one, other = self.from_end.name, self.to_end.name
        return FrozenSet.of(name, f"{name} from {one} to {other}", f"{name} from {other} to {one}")

    def descript_name(self, override_name: str = "") -> str:
        """Return the name that tells both ends; a drain is called a door here too."""
        return f"door between {self.from_end.name} and {self.to_end.name}"

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Return the engine's mark of a place that was not told."""
        return "ERROR: SHOULD USE OVERRIDE FOR PORTAL."

    def description_from(self, mode: int, perspective_container: EnvObject) -> str:
        """Describe the portal, seen from a container."""
        state = f"(that is {self.open_closed_str()})"
        there = self.connects_to(perspective_container)
        if there is not None:
            return f"A {self.name} to the {there.name} {state}"
        ends = f"the {self.from_end.name} to the {self.to_end.name}"
        return f"A {self.name} that connects {ends} {state}"

    def description_safe_from(self, mode: int, perspective_container: EnvObject) -> str | None:
        """Describe the portal, seen from a container; None for a hidden one."""
        return None if self.is_hidden() else self.description_from(mode, perspective_container)


class Door(Portal):
    """A door between two rooms."""

    def __init__(
        self, world: World, is_open: bool, connects_from: EnvObject, connects_to: EnvObject
    ) -> None:
        super().__init__(world, is_open, connects_from, connects_to)
        self.name = "door"


class LiquidDrain(Portal):
    """A drain, through which liquids leave its container."""

    def __init__(
        self, world: World, is_open: bool, connects_from: EnvObject, connects_to: EnvObject
    ) -> None:
        super().__init__(world, is_open, connects_from, connects_to)
        self.name = "drain"

    def tick(self) -> bool:
        """Let the liquids through, if the drain is open."""
        if self.is_currently_passable():
            liquids = [
                obj
                for obj in self.from_end.contained_objects()
                if obj.prop_material is not None and obj.prop_material.state_of_matter == "liquid"
            ]
            for obj in liquids:
                self.to_end.add_object(obj)
        return super().tick()

    def referents_from(self, perspective_container: EnvObject) -> FrozenSet[str]:
        """Return the names that a command may use, seen from a container."""
        here = self.connects_from(perspective_container)
        if here is None:
            return FrozenSet.of(self.name)
        return FrozenSet.of(self.name, f"{here.name} {self.name}")

    def description_from(self, mode: int, perspective_container: EnvObject) -> str:
        """Describe the drain, seen from a container."""
        return f"A {self.name}, which is {self.open_closed_str()}"
