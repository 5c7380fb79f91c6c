"""Small things: forks, foil and pictures."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

from agentgyms.envs.scienceworld.own.objects.base import (
    MODE_CURSORY_DETAIL,
    MODE_DETAILED,
    EnvObject,
)
from agentgyms.envs.scienceworld.own.properties.container import IsNotContainer
from agentgyms.envs.scienceworld.own.properties.material import MaterialProperties
from agentgyms.envs.scienceworld.own.properties.materials import (
    AluminumProp,
    PaperProp,
    PlasticProp,
    SteelProp,
)
from agentgyms.envs.scienceworld.own.sets import FrozenSet
from agentgyms.envs.scienceworld.own.world import World

_PICTURE_TYPES: Final = ("picture", "drawing", "painting", "finger painting")
_SUBJECTS: Final = (
    "a cow",
    "a chicken",
    "a farm",
    "a lush green meadow",
    "rolling hills",
    "a wintery mountain",
    "a boat crossing a river",
    "the moon",
    "abstract shapes",
    "two people playing",
)
_ARTISTS: Final = ("Alexandra", "Owen", "Bob", "Lily")


class _Item(EnvObject):
    """A small thing, which a command may name by its material too where it has a noun."""

    NAME: ClassVar[str]
    NOUN: ClassVar[str] = ""
    MATERIAL: ClassVar[Callable[[], MaterialProperties]]

    prop_material: MaterialProperties

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.name = self.NAME
        self.prop_material = type(self).MATERIAL()

    def referents(self) -> FrozenSet[str]:
        if not self.NOUN:
            return FrozenSet.of(self.name, self.descript_name())
        made = f"{self.prop_material.substance_name} {self.NOUN}"
        return FrozenSet.of(self.name, made, self.descript_name())

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        return f"A {self.descript_name()}"


class ForkMetal(_Item):
    """A metal fork."""

    NAME = "metal fork"
    NOUN = "fork"
    MATERIAL = SteelProp


class ForkPlastic(_Item):
    """A plastic fork."""

    NAME = "plastic fork"
    NOUN = "fork"
    MATERIAL = PlasticProp


class PaperClip(_Item):
    """A paper clip."""

    NAME = "paper clip"
    NOUN = "paper clip"
    MATERIAL = SteelProp


class AluminumFoil(_Item):
    """A sheet of aluminum foil."""

    NAME = "aluminum foil"
    MATERIAL = AluminumProp


class Picture(EnvObject):
    """A picture with a `subject`, Scala's `description`, and an artist."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.name = "document"
        self.subject = "document"
        self.artist = "This is a sample document."
        self.prop_material = PaperProp()
        self.prop_container = IsNotContainer()

    @staticmethod
    def mk_random(world: World) -> Picture:
        """Return a picture of a random kind, subject and artist, drawn in this order."""
        out = Picture(world)
        out.name = _PICTURE_TYPES[world.random.next_int(len(_PICTURE_TYPES))]
        out.subject = _SUBJECTS[world.random.next_int(len(_SUBJECTS))]
        out.artist = _ARTISTS[world.random.next_int(len(_ARTISTS))]
        return out

    def referents(self) -> FrozenSet[str]:
        """Return the names that a command may use."""
        name = self.descript_name()
        return FrozenSet.of(
            self.name, f"{self.name} of {self.subject}", name, f"{name} of {self.subject}"
        )

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Describe the picture, in a close look with its subject and artist."""
        name = self.descript_name()
        if mode == MODE_CURSORY_DETAIL:
            return f"a {name}"
        if mode == MODE_DETAILED:
            return f"a {name} of {self.subject}.  The artist is listed as {self.artist}. "
        return ""
