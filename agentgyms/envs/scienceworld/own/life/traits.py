"""Which traits each kind of plant has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentgyms.envs.scienceworld.own.life.genetics import ChromosomePair, Chromosomes, GeneticTrait

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.world import World

_HEIGHT, _FLOWERS = "height", "flowers"


@dataclass(frozen=True)
class TraitTable:
    """A kind's traits: name, dominant value, recessive value and the word after the value."""

    traits: tuple[tuple[str, str, str, str], ...]
    order_except: tuple[int, ...] = (0, 1, 2, 3)  # in which alleles are drawn beside a given one

    def _allele(self, index: int, dom_or_rec: str) -> GeneticTrait:
        name, dominant, recessive, suffix = self.traits[index]
        return GeneticTrait(name, dominant, recessive, suffix, dom_or_rec)

    def mk_random_traits(self, world: World) -> list[GeneticTrait]:
        """Draw an allele of each trait."""
        return [
            self._allele(i, GeneticTrait.mk_random_dom_rec(world)) for i in range(len(self.traits))
        ]

    def mk_random_chromosome_pair(self, world: World) -> ChromosomePair:
        """Draw the genes of both parents."""
        first = Chromosomes(self.mk_random_traits(world))
        return ChromosomePair(first, Chromosomes(self.mk_random_traits(world)))

    def mk_random_traits_except(
        self, world: World, trait_name: str, dom_or_rec: str
    ) -> Sequence[GeneticTrait]:
        """Draw an allele of each trait but one, which is given."""
        drawn = []
        for i in self.order_except:
            given = self.traits[i][0] == trait_name
            drawn.append(
                self._allele(i, dom_or_rec if given else GeneticTrait.mk_random_dom_rec(world))
            )
        return drawn

    def mk_random_chromosome_pair_except(
        self, world: World, trait_name: str, parent1_dom_or_rec: str, parent2_dom_or_rec: str
    ) -> ChromosomePair:
        """Draw the genes of both parents but for one trait, whose alleles are given."""
        first = Chromosomes(self.mk_random_traits_except(world, trait_name, parent1_dom_or_rec))
        second = self.mk_random_traits_except(world, trait_name, parent2_dom_or_rec)
        return ChromosomePair(first, Chromosomes(second))


GeneticTraitPeas = TraitTable(
    (
        (GeneticTrait.TRAIT_PLANT_HEIGHT, "tall", "short", _HEIGHT),
        (GeneticTrait.TRAIT_SEED_SHAPE, "round", "wrinkly", "peas"),
        (GeneticTrait.TRAIT_SEED_COLOR, "green", "orange", "peas"),
        (GeneticTrait.TRAIT_FLOWER_COLOR, "purple", "white", _FLOWERS),
    )
)
GeneticTraitUnknownPlantB = TraitTable(
    (
        (GeneticTrait.TRAIT_PLANT_HEIGHT, "short", "tall", _HEIGHT),
        (GeneticTrait.TRAIT_SEED_COLOR, "green", "yellow", "seed"),
        (GeneticTrait.TRAIT_FLOWER_SIZE, "large", "small", _FLOWERS),
        (GeneticTrait.TRAIT_FLOWER_COLOR, "orange", "yellow", _FLOWERS),
    )
)
GeneticTraitUnknownPlantC = TraitTable(
    (
        (GeneticTrait.TRAIT_PLANT_HEIGHT, "short", "tall", _HEIGHT),
        (GeneticTrait.TRAIT_LEAF_SHAPE, "pointed", "round", "leaves"),
        (GeneticTrait.TRAIT_FLOWER_SIZE, "large", "small", _FLOWERS),
        (GeneticTrait.TRAIT_FLOWER_COLOR, "orange", "yellow", _FLOWERS),
    )
)
GeneticTraitUnknownPlantD = TraitTable(
    (
        (GeneticTrait.TRAIT_SEED_SHAPE, "spherical", "ovate", "seed"),
        (GeneticTrait.TRAIT_LEAF_SIZE, "medium", "large", "leaves"),
        (GeneticTrait.TRAIT_FLOWER_SIZE, "small", "medium", _FLOWERS),
        (GeneticTrait.TRAIT_FLOWER_COLOR, "blue", "red", _FLOWERS),
    )
)
GeneticTraitUnknownPlantE = TraitTable(
    (
        (GeneticTrait.TRAIT_SEED_COLOR, "blue", "brown", "seed"),
        (GeneticTrait.TRAIT_SEED_SHAPE, "round", "square", "seed"),
        (GeneticTrait.TRAIT_LEAF_SHAPE, "elliptical", "linear", "leaves"),
        (GeneticTrait.TRAIT_FLOWER_SIZE, "small", "large", _FLOWERS),
    ),
    order_except=(0, 2, 3, 1),
)
