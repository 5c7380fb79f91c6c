"""Containers: pots, cups, flower pots, shelves, and what waters itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import ClassVar

from agentgyms.envs.scienceworld.own.objects.base import MODE_CURSORY_DETAIL, EnvObject
from agentgyms.envs.scienceworld.own.objects.documents import Book
from agentgyms.envs.scienceworld.own.objects.substances import Water
from agentgyms.envs.scienceworld.own.objects.texts import object_list_to_string_description
from agentgyms.envs.scienceworld.own.properties.container import (
    ContainerProperties,
    IsContainer,
    IsOpenUnclosableContainer,
)
from agentgyms.envs.scienceworld.own.properties.material import MaterialProperties
from agentgyms.envs.scienceworld.own.properties.materials import (
    CeramicProp,
    GlassProp,
    PaperProp,
    PlasticProp,
    SteelProp,
    TinProp,
    WoodProp,
)
from agentgyms.envs.scienceworld.own.sets import FrozenSet, MutableSet
from agentgyms.envs.scienceworld.own.world import World

_SELF_WATERING = "selfWateringFlowerPots"


@lru_cache(maxsize=4096)
def _with_contents(names: tuple[str, ...], listed: str) -> FrozenSet[str]:
    out: MutableSet[str] = MutableSet()
    for name in names:
        out.add(name)
        out.add(f"{name} containing {listed}")
    return out.frozen()


class Container(EnvObject):
    """A thing that holds others; `NOUNS` are more names that a command may use."""

    NAME: ClassVar[str] = "container"
    NOUNS: ClassVar[tuple[str, ...]] = ("container",)
    CONTAINER: ClassVar[Callable[[], ContainerProperties]] = IsContainer
    MATERIAL: ClassVar[Callable[[], MaterialProperties] | None] = None

    prop_container: ContainerProperties

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.name = self.NAME
        self.prop_container = type(self).CONTAINER()
        made_of = type(self).MATERIAL
        if made_of is not None:
            self.prop_material = made_of()

    def referents(self) -> FrozenSet[str]:
        """Return the names that a command may use."""
        return FrozenSet.of(*self.NOUNS, self.name, self.descript_name())

    def mk_content_references(self, existing_referents: Iterable[str]) -> FrozenSet[str]:
        """Return the names and, for each, one that tells the contents."""
        contents = self.contained_objects(include_hidden=False)
        listed = " and ".join(sorted({obj.descript_name() for obj in contents})) or "nothing"
        # A thing whose name is empty would be told as nothing; the engine has none.
        return _with_contents(tuple(existing_referents), listed)

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Describe the container and its contents."""
        contents = self.contained_objects_and_portals()
        if not contents:
            return f"an empty {self.descript_name()}"
        listed = object_list_to_string_description(contents, self)
        return f"a {self.descript_name()} (containing {listed})"


class Sewer(Container):
    """The place where drains end, which nobody sees."""

    NAME = "sewer"
    NOUNS = ()
    CONTAINER = IsOpenUnclosableContainer
    MATERIAL = SteelProp


class _Vessel(Container):
    """A container that a command may name by its contents."""

    CONTAINER = IsOpenUnclosableContainer

    def referents(self) -> FrozenSet[str]:
        return self.mk_content_references(super().referents())


class Cup(Container):
    """A container to pick up other things with."""


class _CupVessel(_Vessel, Cup):
    """A cup that a command may name by its contents."""


class MetalPot(_CupVessel):
    """A metal pot."""

    NAME = "metal pot"
    NOUNS = ("pot", "metal pot")
    MATERIAL = SteelProp


class GlassCup(_CupVessel):
    """A glass cup."""

    NAME = "glass cup"
    NOUNS = ("cup", "glass cup")
    MATERIAL = GlassProp


class PlasticCup(_CupVessel):
    """A plastic cup."""

    NAME = "plastic cup"
    NOUNS = ("cup", "plastic cup")
    MATERIAL = PlasticProp


class WoodCup(_CupVessel):
    """A wood cup."""

    NAME = "wood cup"
    NOUNS = ("cup", "wood cup")
    MATERIAL = WoodProp


class TinCup(_CupVessel):
    """A tin cup."""

    NAME = "tin cup"
    NOUNS = ("cup", "tin cup")
    MATERIAL = TinProp


class PaperCup(_CupVessel):
    """A paper cup."""

    NAME = "paper cup"
    NOUNS = ("cup", "paper cup")
    MATERIAL = PaperProp


class CeramicCup(_CupVessel):
    """A ceramic cup."""

    NAME = "ceramic cup"
    NOUNS = ("cup", "ceramic cup")
    MATERIAL = CeramicProp


class WoodBowl(_CupVessel):
    """A bowl, named by its material too."""

    NAME = "bowl"
    MATERIAL = WoodProp

    prop_material: MaterialProperties

    def referents(self) -> FrozenSet[str]:
        """Return the names that a command may use, with the contents and without."""
        made = f"{self.prop_material.substance_name} bowl"
        names = FrozenSet.of("bowl", made, self.name, self.descript_name())
        return self.mk_content_references(names)


class Jug(_CupVessel):
    """A jug."""

    NAME = "jug"
    NOUNS = ("jug",)
    MATERIAL = PlasticProp


class GlassJar(_CupVessel):
    """A glass jar, which has a lid."""

    NAME = "glass jar"
    NOUNS = ("jar", "glass jar")
    CONTAINER = IsContainer
    MATERIAL = GlassProp


class FlowerPot(_Vessel):
    """A flower pot, which one simplification waters."""

    NAME = "flower pot"
    NOUNS = ("pot", "flower pot")
    MATERIAL = CeramicProp

    def tick(self) -> bool:
        """Water the pot where the episode asks for it."""
        simplifier = self.world.simplifier
        if simplifier is not None and simplifier.is_simplification_enabled(_SELF_WATERING):
            add_missing_water(self)
        return super().tick()


class SelfWateringFlowerPot(_Vessel):
    """A flower pot that always has water."""

    NAME = "self watering flower pot"
    NOUNS = ("pot", "flower pot")
    MATERIAL = CeramicProp

    def tick(self) -> bool:
        """Water the pot."""
        add_missing_water(self)
        return super().tick()


class BookShelf(_Vessel):
    """A shelf of books."""

    NAME = "book shelf"
    NOUNS = ("shelf", "book shelf")
    MATERIAL = WoodProp

    @staticmethod
    def mk_random(world: World) -> BookShelf:
        """Return a shelf with up to three books."""
        count = world.random.next_int(4)
        shelf = BookShelf(world)
        for _ in range(count):
            shelf.add_object(Book.mk_random(world))
        return shelf


def add_missing_water(container: EnvObject) -> None:
    """Put water into the container if it has none."""
    if not container.contained_objects_of_type(Water):
        container.add_object(Water(container.world))
