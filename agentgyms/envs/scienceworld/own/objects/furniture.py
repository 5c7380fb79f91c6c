"""Furniture: tables, cupboards, drawers, beds and seats."""

from __future__ import annotations

from agentgyms.envs.scienceworld.own.objects.base import (
    MODE_CURSORY_DETAIL,
    MODE_DETAILED,
    EnvObject,
)
from agentgyms.envs.scienceworld.own.objects.containers import Container
from agentgyms.envs.scienceworld.own.objects.texts import object_list_to_string_description
from agentgyms.envs.scienceworld.own.properties.container import (
    IsContainer,
    IsOpenUnclosableContainer,
)
from agentgyms.envs.scienceworld.own.properties.material import MaterialProperties
from agentgyms.envs.scienceworld.own.properties.materials import (
    CottonClothProp,
    SteelProp,
    WoodProp,
)
from agentgyms.envs.scienceworld.own.sets import FrozenSet
from agentgyms.envs.scienceworld.own.world import World


class _Furniture(Container):
    """A piece of furniture, which a command may name by its material too."""

    MATERIAL = WoodProp

    prop_material: MaterialProperties

    def referents(self) -> FrozenSet[str]:
        noun = self.NOUNS[0]
        made = f"{self.prop_material.substance_name} {self.NOUNS[-1]}"
        return FrozenSet.of(noun, made, self.name, self.descript_name())

    def _told_contents(self, where: str, mode: int) -> str:
        """Return the contents, in a line, or in lines where the look is a close one."""
        contents = self.contained_objects()
        intro = f"{where} the {self.descript_name()} is: "
        if mode == MODE_CURSORY_DETAIL:
            return f"{intro}{object_list_to_string_description(contents, self)}."
        if mode == MODE_DETAILED:
            return f"{intro}\n{object_list_to_string_description(contents, self, multiline=True)}"
        return ""


class Sittable(_Furniture):
    """A piece of furniture to sit on."""

    NAME = "sittable"
    NOUNS = ("sittable",)
    CONTAINER = IsOpenUnclosableContainer

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Describe the seat and what lies on it, in one line always."""
        name = self.descript_name()
        listed = object_list_to_string_description(self.contained_objects_and_portals(), self)
        return f"a {name}. On the {name} is: {listed}."


class Chair(Sittable):
    """A chair."""

    NAME = "chair"


class Couch(Sittable):
    """A couch with a pillow."""

    NAME = "couch"
    MATERIAL = CottonClothProp

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.pillow = Pillow(world)
        self.add_object(self.pillow)


class Bed(Sittable):
    """A bed with a mattress, and a pillow on that."""

    NAME = "bed"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.mattress = Mattress(world)
        self.add_object(self.mattress)
        self.pillow = Pillow(world)
        self.mattress.add_object(self.pillow)


class Mattress(Sittable):
    """A mattress."""

    NAME = "mattress"
    MATERIAL = CottonClothProp


class Pillow(EnvObject):
    """A pillow, which has only the names that every object has."""

    prop_material: MaterialProperties

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.name = "pillow"
        self.prop_material = CottonClothProp()

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Describe the pillow with its color."""
        return f"a {self.prop_material.color} {self.descript_name()}"


class _Top(_Furniture):
    """A piece of furniture with a top that things lie on."""

    CONTAINER = IsOpenUnclosableContainer

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        return f"a {self.descript_name()}. {self._told_contents('On', mode)}"


class WoodTable(_Top):
    """A table of wood."""

    NAME = "table"
    NOUNS = ("table",)


class SteelTable(_Top):
    """A table of steel."""

    NAME = "table"
    NOUNS = ("table",)
    MATERIAL = SteelProp


class Desk(_Top):
    """A desk with a drawer."""

    NAME = "desk"
    NOUNS = ("desk",)

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.drawer = Drawer(world)
        self.add_object(self.drawer)


class Counter(_Top):
    """A counter with a drawer."""

    NAME = "counter"
    NOUNS = ("counter",)

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.drawer = Drawer(world)
        self.add_object(self.drawer)


class _Closed(_Furniture):
    """A piece of furniture with a door, closed at first."""

    CONTAINER = IsContainer

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        name = self.descript_name()
        is_open = self.prop_container.is_open
        told = self._told_contents("In", mode) if is_open else ""
        return f"a {name}. The {name} door is {'open' if is_open else 'closed'}. {told}"


class Cupboard(_Closed):
    """A cupboard with a drawer."""

    NAME = "cupboard"
    NOUNS = ("cupboard",)

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.drawer = Drawer(world)
        self.add_object(self.drawer)


class Closet(_Closed):
    """A closet."""

    NAME = "closet"
    NOUNS = ("closet",)


class Drawer(_Furniture):
    """A drawer, which the engine lets be named as a table of its material."""

    NAME = "drawer"
    NOUNS = ("drawer", "table")
    CONTAINER = IsContainer

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Describe the drawer, and its contents only in a close look."""
        told = f"a {self.descript_name()}"
        if mode != MODE_DETAILED:
            return told
        if not self.prop_container.is_open:
            return f"{told}.  The drawer is closed."
        return f"{told}. {self._told_contents('In', mode)}"


class BeeHive(_Closed):
    """A bee hive, told as a cupboard is."""

    NAME = "bee hive"
    NOUNS = ("bee hive", "hive", "beehive")

    def referents(self) -> FrozenSet[str]:
        """Return the names that a command may use."""
        return Container.referents(self)
