"""Plants with genes: peas, and the unknown plants B to E."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from agentgyms.envs.scienceworld.own.life.genetics import (
    ChromosomePair,
    GeneticReproduction,
    GeneticTrait,
)
from agentgyms.envs.scienceworld.own.life.plant_stages import (
    PLANT_STAGE_ADULT_PLANT,
    PLANT_STAGE_REPRODUCING,
)
from agentgyms.envs.scienceworld.own.life.traits import (
    GeneticTraitPeas,
    GeneticTraitUnknownPlantB,
    GeneticTraitUnknownPlantC,
    GeneticTraitUnknownPlantD,
    GeneticTraitUnknownPlantE,
    TraitTable,
)
from agentgyms.envs.scienceworld.own.life.trees import SeedEater
from agentgyms.envs.scienceworld.own.sets import FrozenSet, MutableSet

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.objects.base import EnvObject
    from agentgyms.envs.scienceworld.own.world import World

_GROWN_UP = (PLANT_STAGE_ADULT_PLANT, PLANT_STAGE_REPRODUCING)
_WITH = " with a "


class CrossedPlant(SeedEater):
    """A plant whose genes show in its texts and names."""

    NAME = ""
    TRAITS: TraitTable

    def __init__(self, world: World, chromosome_pairs: ChromosomePair | None = None) -> None:
        super().__init__(world)
        self.name = self.NAME
        self.genes = chromosome_pairs or self.TRAITS.mk_random_chromosome_pair(world)
        self.prop_chromosome_pairs = self.genes

    def mk_fruit(self, parent2: ChromosomePair | None) -> EnvObject:
        """Return a new seed with the genes of both parents, for its fruits are seeds."""
        if parent2 is None:
            return type(self)(self.world)
        mated = GeneticReproduction.mate_genes_punnet_square(self.world, self.genes, parent2)
        return type(self)(self.world, mated)

    def seed_description(self, plant_name: str) -> str:
        """Return a seed's text."""
        return f"a {self.mk_genetic_traits_str()} {plant_name}"

    def referents(self) -> FrozenSet[str]:
        """Return the names by which commands may call it, with and without what its genes show."""
        plant, stage = self.plant_name(), self.lifecycle.cur_stage_name()
        descript = self.descript_name()
        names = FrozenSet(
            (
                "living thing",
                "organism",
                self.name,
                self.prop_life.lifeform_type,
                f"{self.name} in the {stage} stage",
                f"{stage} plant",
                plant,
                f"{plant} in the {stage} stage",
                f"{stage} {plant}",
                descript,
                f"{descript} in the {stage} stage",
            )
        )
        traits = self.mk_genetic_traits_str()
        if traits.startswith(_WITH):
            traits = traits[len(_WITH) - 1 :].strip()
        if traits:
            # The real engine takes the name as a regular expression, so that of a burning plant,
            # which has parentheses, is found nowhere.
            shown = f"{traits.strip()} {plant}"
            replaced = MutableSet(re.sub(plant, shown, name) for name in names)
            names = names.union(replaced)
        return self._with_health(names)


class PeaPlant(CrossedPlant):
    """A pea plant."""

    NAME = "pea"
    LIFEFORM_TYPE = "pea"
    TRAITS = GeneticTraitPeas

    def mk_genetic_traits_str(self) -> str:
        """Return what a seed or a grown plant shows of its genes."""
        if self.is_seed():
            shape = self.genes.phenotype_value(GeneticTrait.TRAIT_SEED_SHAPE)
            return f"{shape} {self.genes.phenotype_value(GeneticTrait.TRAIT_SEED_COLOR)} "
        if self.lifecycle.cur_stage_name() not in _GROWN_UP:
            return ""
        height = self.genes.trait_phenotype_human_readable_str(GeneticTrait.TRAIT_PLANT_HEIGHT)
        return f" with a {height}"


class RandomGeneticsPlants(CrossedPlant):
    """A plant of a kind that exists only here."""

    NAME = "unknown"
    LIFEFORM_TYPE = "pea"
    TRAITS = GeneticTraitUnknownPlantE

    def _shown(self, *traits: str) -> list[str]:
        values = (self.genes.phenotype_value(trait) for trait in traits)
        return [value for value in values if value is not None]

    def mk_genetic_traits_str(self) -> str:
        """Return what a seed or a grown plant shows of its genes."""
        if self.is_seed():
            return " ".join(
                self._shown(GeneticTrait.TRAIT_SEED_SHAPE, GeneticTrait.TRAIT_SEED_COLOR)
            )
        if self.lifecycle.cur_stage_name() not in _GROWN_UP:
            return ""
        parts = []
        height = self.genes.trait_phenotype_human_readable_str(GeneticTrait.TRAIT_PLANT_HEIGHT)
        if height is not None:
            parts.append(f"a {height}")
        leaves = self._shown(GeneticTrait.TRAIT_LEAF_SIZE, GeneticTrait.TRAIT_LEAF_SHAPE)
        if leaves:
            parts.append(" ".join(leaves) + " leaves")
        return f" with {' and '.join(parts)}" if parts else ""


class _UnknownKind(RandomGeneticsPlants):
    """A kind of unknown plant; the real engine draws and drops genes of kind E first."""

    def __init__(self, world: World, chromosome_pairs: ChromosomePair | None = None) -> None:
        GeneticTraitUnknownPlantE.mk_random_chromosome_pair(world)
        super().__init__(world, chromosome_pairs)


class RandomGeneticsPlantsB(_UnknownKind):
    """Unknown plant B."""

    NAME = LIFEFORM_TYPE = "unknown B"
    TRAITS = GeneticTraitUnknownPlantB


class RandomGeneticsPlantsC(_UnknownKind):
    """Unknown plant C."""

    NAME = LIFEFORM_TYPE = "unknown C"
    TRAITS = GeneticTraitUnknownPlantC


class RandomGeneticsPlantsD(_UnknownKind):
    """Unknown plant D."""

    NAME = LIFEFORM_TYPE = "unknown D"
    TRAITS = GeneticTraitUnknownPlantD


class RandomGeneticsPlantsE(_UnknownKind):
    """Unknown plant E."""

    NAME = LIFEFORM_TYPE = "unknown E"
    TRAITS = GeneticTraitUnknownPlantE
