"""Places: the universe, its rooms and the outside, and what is a part of the outside."""

from __future__ import annotations

from typing import ClassVar

from agentgyms.envs.scienceworld.own.objects.base import FIXED, MODE_CURSORY_DETAIL, EnvObject
from agentgyms.envs.scienceworld.own.objects.containers import Container, add_missing_water
from agentgyms.envs.scienceworld.own.objects.substances import Air
from agentgyms.envs.scienceworld.own.objects.texts import (
    object_list_to_string_description,
    portal_list_to_string_description,
)
from agentgyms.envs.scienceworld.own.properties.container import IsOpenUnclosableContainer
from agentgyms.envs.scienceworld.own.properties.materials import CeramicProp, SoilProp
from agentgyms.envs.scienceworld.own.sets import FrozenSet
from agentgyms.envs.scienceworld.own.world import World

_AIR_C = 25.0


class Ground(EnvObject):
    """The ground, which keeps nothing: what lands on it goes to the place around."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.name = "ground"
        self.prop_material = SoilProp()
        self.prop_container = IsOpenUnclosableContainer()

    def tick(self) -> bool:
        """Hand all that is on the ground to the place around."""
        place = self.container()
        if place is not None:
            # With the hidden terminals of the ground, which move in the first tick.
            for obj in self.contained_objects():
                place.add_object(obj)
        return super().tick()

    def referents(self) -> FrozenSet[str]:
        """Return the names that a command may use."""
        return FrozenSet.of("ground", self.name, self.descript_name())

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Describe the ground."""
        return f"the {self.descript_name()}"


class Hole(Container):
    """A hole in the ground."""

    NAME = "hole"
    NOUNS = ("hole",)
    CONTAINER = IsOpenUnclosableContainer

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Describe the hole, whose terminals make it never empty."""
        contents = self.contained_objects()
        if not contents:
            return f"a hole {self.descript_name()}"
        listed = object_list_to_string_description(contents, self)
        return f"a {self.descript_name()} (containing {listed})"


class FirePit(Container):
    """A fire pit."""

    NAME = "fire pit"
    NOUNS = ("fire pit",)
    CONTAINER = IsOpenUnclosableContainer
    MATERIAL = CeramicProp


class Fountain(Container):
    """A fountain, which never runs dry."""

    NAME = "fountain"
    NOUNS = ("fountain",)
    CONTAINER = IsOpenUnclosableContainer
    MATERIAL = CeramicProp

    def tick(self) -> bool:
        """Fill the fountain."""
        add_missing_water(self)
        return super().tick()


class Location(EnvObject):
    """A place that an agent can be in."""

    KIND: ClassVar[str] = "location"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.name = self.KIND
        self.prop_moveable = FIXED
        self.prop_container = IsOpenUnclosableContainer()

    def referents(self) -> FrozenSet[str]:
        """Return the names that a command may use."""
        return FrozenSet.of(self.KIND, self.name, self.descript_name())

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Describe the place and all in it."""
        contents = self.contained_objects_and_portals()
        listed = object_list_to_string_description(contents, self, multiline=True)
        return f"A {self.descript_name()}. In this {self._called()}, you see: {listed}."

    def _called(self) -> str:
        return "location"


class Universe(Location):
    """The root of all places."""

    KIND = "universe"

    def referents(self) -> FrozenSet[str]:
        """Return the names that a command may use."""
        return FrozenSet.of("universe", self.descript_name())

    def _called(self) -> str:
        return "Universe"


class _Aired(Location):
    """A place with air, told with its objects first and then its portals."""

    INTRO: ClassVar[str]

    def __init__(self, world: World, name: str = "") -> None:
        super().__init__(world)
        self.name = name or self.KIND
        self.air = Air(world)
        if self.air.prop_material is not None:
            self.air.prop_material.temperature_c = _AIR_C
        self.add_object(self.air)

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        things = object_list_to_string_description(self.contained_objects(), self, multiline=True)
        ways = portal_list_to_string_description(self.portals(), self, multiline=True)
        intro = self.INTRO.format(self.descript_name())
        return f"{intro}{things}You also see:\n{ways}"


class Room(_Aired):
    """A room of the house."""

    KIND = "room"
    INTRO = "This room is called the {}. In it, you see: \n"


class Outside(_Aired):
    """The outside of the house."""

    KIND = "outside"
    INTRO = "This outside location is called the {}. Here you see: \n"

    def __init__(self, world: World, name: str = "") -> None:
        super().__init__(world, name)
        self.ground = Ground(world)
        self.add_object(self.ground)
