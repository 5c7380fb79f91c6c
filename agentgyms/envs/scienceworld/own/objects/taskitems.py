"""Things that only tasks bring: answer boxes and unknown substances."""

from __future__ import annotations

from typing import Final

from agentgyms.envs.scienceworld.own.objects.base import MODE_CURSORY_DETAIL, EnvObject
from agentgyms.envs.scienceworld.own.objects.containers import Container
from agentgyms.envs.scienceworld.own.processes.matter import change_of_state
from agentgyms.envs.scienceworld.own.properties.container import IsOpenUnclosableContainer
from agentgyms.envs.scienceworld.own.properties.material import MaterialProperties
from agentgyms.envs.scienceworld.own.properties.materials import CeramicProp, MetalProp
from agentgyms.envs.scienceworld.own.sets import FrozenSet
from agentgyms.envs.scienceworld.own.world import World

_MELTING_POINTS: Final = {
    "A": 25.0,
    "B": 75.0,
    "C": 115.0,
    "D": -30.0,
    "E": -10.0,
    "F": 275.0,
    "G": 30.0,
    "H": 225.0,
    "I": 75.0,
    "J": -75.0,
    "K": 520.0,
    "L": 325.0,
    "M": -25.0,
    "N": 175.0,
    "O": 25.0,
    "P": 75.0,
    "Q": 425.0,
    "R": 30.0,
    "S": 15.0,
    "T": -2.0,
    "U": 625.0,
    "V": -220.0,
    "W": 575.0,
    "X": -175.0,
    "Y": 675.0,
    "Z": 775.0,
}


class AnswerBox(Container):
    """A box to put an answer into, named by its color only."""

    NOUNS = ()
    CONTAINER = IsOpenUnclosableContainer
    MATERIAL = CeramicProp

    def __init__(self, world: World, colour_name: str) -> None:
        super().__init__(world)
        self.name = f"{colour_name} box"


class _UnknownSubstance(EnvObject):
    prop_material: MaterialProperties

    def __init__(self, world: World, letter_name: str) -> None:
        super().__init__(world)
        self.name = f"unknown substance {letter_name}"
        self.prop_material = MetalProp()

    def referents(self) -> FrozenSet[str]:
        return FrozenSet.of(self.name, "unknown substance", self.descript_name())

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Describe the substance by its bare name, even if it burns."""
        return self.name


class UnknownSubstanceElectricalConductivity(_UnknownSubstance):
    """An unknown substance that conducts electricity, or does not."""

    def __init__(self, world: World, letter_name: str = "A", *, is_conductive: bool) -> None:
        super().__init__(world, letter_name)
        self.prop_material.electrically_conductive = is_conductive

    @staticmethod
    def mk_random_substance_electrical_conductive(world: World, letter_name: str) -> EnvObject:
        """Return a substance that conducts in one of two draws."""
        is_conductive = world.random.next_float() >= 0.5
        return UnknownSubstanceElectricalConductivity(
            world, letter_name, is_conductive=is_conductive
        )


class UnknownSubstanceThermal(_UnknownSubstance):
    """An unknown substance for experiments with temperature."""

    def __init__(self, world: World, letter_name: str = "B") -> None:
        super().__init__(world, letter_name)

    @staticmethod
    def mk_random_substance_melting_point(world: World, letter_name: str = "B") -> EnvObject:
        """Return the substance that melts at the letter's point; nothing is drawn."""
        substance = UnknownSubstanceThermal(world, letter_name)
        name, material = substance.name, substance.prop_material
        material.melting_point = _MELTING_POINTS[letter_name]
        material.substance_name = name
        material.name_in_state_of_matter = {
            "solid": f"solid {name}",
            "liquid": f"liquid {name}",
            "gas": f"gaseous {name}",
        }
        change_of_state(substance, force_name_update=True)
        return substance

    @staticmethod
    def precomputed_melt_points(letter_name: str) -> float:
        """Return the melting point of a letter."""
        return _MELTING_POINTS[letter_name]
