"""Food."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from agentgyms.envs.scienceworld.own.objects.base import MODE_CURSORY_DETAIL, EnvObject
from agentgyms.envs.scienceworld.own.properties.material import MaterialProperties
from agentgyms.envs.scienceworld.own.properties.materials import (
    AppleJuiceProp,
    ChocolateProp,
    FlourProp,
    IceCreamProp,
    JamProp,
    MarshmallowProp,
    NutProp,
    OrangeJuiceProp,
    PlantMatterProp,
)
from agentgyms.envs.scienceworld.own.properties.simple import Edible
from agentgyms.envs.scienceworld.own.sets import FrozenSet

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.world import World


class Food(EnvObject):
    """Something to eat."""

    MATERIAL: ClassVar[type[MaterialProperties] | None] = None

    def __init__(self, world: World, name: str = "") -> None:
        super().__init__(world)
        self.name = name
        self.prop_edibility = Edible()
        if self.MATERIAL is not None:
            self.prop_material = self.MATERIAL()


class NamedFood(Food):
    """Food that commands may call by its `KIND`, even when its name has changed."""

    KIND: ClassVar[str] = ""
    ARTICLE: ClassVar[str] = ""
    COLOR: ClassVar[str] = ""

    def __init__(self, world: World) -> None:
        super().__init__(world, self.KIND)

    def referents(self) -> FrozenSet[str]:
        """Return the names that a command may use."""
        return FrozenSet.of(self.KIND, self.name, self.descript_name())

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Describe it."""
        return self.ARTICLE + self.descript_name()


class ColoredFood(NamedFood):
    """Food whose text tells its color, and which a command may call by it even when it burns."""

    ARTICLE = "a "

    def referents(self) -> FrozenSet[str]:
        """Return the names that a command may use."""
        colored = f"{self.COLOR} {self.KIND}"
        return FrozenSet.of(
            self.KIND, colored, self.name, self.descript_name(), self.descript_name(colored)
        )

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Describe it."""
        return self.ARTICLE + self.descript_name(f"{self.COLOR} {self.KIND}")


class PreparedFood(NamedFood):
    """Food that a command may call by its color too, with the mark of fire that it has."""

    MATERIAL = FlourProp
    COLOR = "white"

    def canonical_name(self) -> str:
        """Return the name with its color."""
        return f"{self.COLOR} {self.KIND}"

    def text_name(self) -> str:
        """Return the name that its text has, whatever its own."""
        return self.KIND

    def referents(self) -> FrozenSet[str]:
        """Return the names that a command may use."""
        return FrozenSet.of(
            self.KIND, self.name, self.descript_name(), self.descript_name(self.canonical_name())
        )

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Describe it."""
        return self.descript_name(self.text_name())


class FixedFood(NamedFood):
    """Food whose text always has its kind's name."""

    MATERIAL = NutProp

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Describe it."""
        return self.descript_name(self.KIND)


class OrangeJuice(NamedFood):
    """Orange juice."""

    KIND, MATERIAL = "orange juice", OrangeJuiceProp


class AppleJuice(NamedFood):
    """Apple juice."""

    KIND, MATERIAL = "apple juice", AppleJuiceProp


class Onion(ColoredFood):
    """An onion."""

    KIND, COLOR = "onion", "red"


class Garlic(NamedFood):
    """Garlic."""

    KIND = "garlic"


class Potato(NamedFood):
    """A potato."""

    KIND, ARTICLE = "potato", "a "


class Chocolate(NamedFood):
    """Chocolate."""

    KIND, MATERIAL = "chocolate", ChocolateProp


class Marshmallow(NamedFood):
    """A marshmallow."""

    KIND, MATERIAL = "marshmallow", MarshmallowProp


class Smores(NamedFood):
    """Smores."""

    KIND, MATERIAL = "smores", MarshmallowProp


class IceCream(NamedFood):
    """Ice cream."""

    KIND, MATERIAL = "ice cream", IceCreamProp


class Flour(PreparedFood):
    """Flour."""

    KIND = "flour"


class Dough(PreparedFood):
    """Dough."""

    KIND = "dough"


class Bread(PreparedFood):
    """Bread."""

    KIND = "bread"


class Jam(PreparedFood):
    """Jam, whose text tells its color."""

    KIND, COLOR, MATERIAL = "jam", "red", JamProp

    def text_name(self) -> str:
        """Return the name that its text has, whatever its own."""
        return self.canonical_name()


class Sandwich(PreparedFood):
    """A sandwich with something."""

    KIND = "sandwich"

    def __init__(self, world: World, sandwich_type: str) -> None:
        super().__init__(world)
        self.sandwich_type = sandwich_type
        self.name = self.canonical_name()

    def canonical_name(self) -> str:
        """Return the name with what is in it."""
        return f"{self.sandwich_type} sandwich"

    def text_name(self) -> str:
        """Return the name that its text has, whatever its own."""
        return self.canonical_name()


class Peanut(FixedFood):
    """A peanut."""

    KIND = "peanut"


class Cashew(FixedFood):
    """A cashew."""

    KIND = "cashew"


class Almond(FixedFood):
    """An almond."""

    KIND = "almond"


class MixedNuts(FixedFood):
    """Mixed nuts."""

    KIND = "mixed nuts"


class FruitSalad(FixedFood):
    """A fruit salad."""

    KIND, MATERIAL = "fruit salad", PlantMatterProp
