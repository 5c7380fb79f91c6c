"""Substances that are not food, plants or animals."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from agentgyms.envs.scienceworld.own.objects.base import MODE_CURSORY_DETAIL, EnvObject
from agentgyms.envs.scienceworld.own.properties import materials as m
from agentgyms.envs.scienceworld.own.sets import FrozenSet

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.world import World


class Substance(EnvObject):
    """Something that is what it is made of."""

    kind: ClassVar[str] = "substance"
    made_of: ClassVar[m.Material | None] = None
    word: ClassVar[str] = "substance"
    opening: ClassVar[str] = "a substance called"

    def __init__(self, world: World) -> None:
        super().__init__(world, self.kind)
        if self.made_of is not None:
            self.prop_material = self.made_of()

    def referents(self) -> FrozenSet[str]:
        """Return the words that mean this substance."""
        return FrozenSet((self.word, self.name, self.descript_name()))

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Return the text that describes the substance."""
        return f"{self.opening} {self.descript_name()}"


class Ice(Substance):
    """Frozen water, which is called water until time passes."""

    kind = "water"
    made_of = m.WaterProp

    def __init__(self, world: World) -> None:
        super().__init__(world)
        assert self.prop_material is not None
        self.prop_material.temperature_c = -10.0


class Block(Substance):
    """A block of a substance."""

    word = "block"
    opening = "a"


class WoodBlock(Block):
    """A block of wood."""

    kind = "wood block"
    made_of = m.WoodProp


class SteelBlock(Block):
    """A block of steel."""

    kind = "steel block"
    made_of = m.SteelProp


class IronBlock(Block):
    """A block of iron."""

    kind = "iron block"
    made_of = m.IronProp


class Brick(Substance):
    """A brick."""

    kind = "brick"
    made_of = m.BrickProp
    opening = "a"


class Air(Substance):
    """The substance air."""

    kind = "air"
    made_of = m.AirProp


class Water(Substance):
    """The substance water."""

    kind = "water"
    made_of = m.WaterProp


class Lead(Substance):
    """The substance lead."""

    kind = "lead"
    made_of = m.LeadProp


class Tin(Substance):
    """The substance tin."""

    kind = "tin"
    made_of = m.TinProp


class Mercury(Substance):
    """The substance mercury."""

    kind = "mercury"
    made_of = m.MercuryProp


class Gallium(Substance):
    """The substance gallium."""

    kind = "gallium"
    made_of = m.GalliumProp


class Caesium(Substance):
    """The substance caesium."""

    kind = "caesium"
    made_of = m.CaesiumProp


class Soap(Substance):
    """The substance soap."""

    kind = "soap"
    made_of = m.SoapProp


class Rubber(Substance):
    """The substance rubber."""

    kind = "rubber"
    made_of = m.RubberProp


class Wood(Substance):
    """The substance wood."""

    kind = "wood"
    made_of = m.WoodProp


class Ash(Substance):
    """The substance ash."""

    kind = "ash"
    made_of = m.AshProp


class Sodium(Substance):
    """The substance sodium."""

    kind = "sodium"
    made_of = m.SodiumProp


class SodiumChloride(Substance):
    """The substance sodium chloride."""

    kind = "sodium chloride"
    made_of = m.SodiumChlorideProp


class SaltWater(Substance):
    """The substance salt water."""

    kind = "salt water"
    made_of = m.SaltWaterProp


class SoapyWater(Substance):
    """The substance soapy water."""

    kind = "soapy water"
    made_of = m.SoapyWaterProp


class SodiumBicarbonate(Substance):
    """The substance sodium bicarbonate."""

    kind = "sodium bicarbonate"
    made_of = m.SodiumBicarbonateProp


class AceticAcid(Substance):
    """The substance acetic acid."""

    kind = "acetic acid"
    made_of = m.AceticAcidProp


class SodiumAcetate(Substance):
    """The substance sodium acetate."""

    kind = "sodium acetate"
    made_of = m.SodiumAcetateProp


class Rust(Substance):
    """The substance rust."""

    kind = "rust"
    made_of = m.RustProp


class Sugar(Substance):
    """The substance sugar."""

    kind = "sugar"
    made_of = m.SugarProp


class SugarWater(Substance):
    """The substance sugar water, whose properties are those of sugar."""

    kind = "sugar water"
    made_of = m.SugarProp
