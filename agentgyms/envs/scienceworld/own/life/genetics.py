"""Genes: each trait has a dominant and a recessive value, and each parent gives one allele."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.world import World


class GeneticTrait:
    """One allele of a trait."""

    __slots__ = (
        "dominant_or_recessive",
        "str_suffix",
        "trait_name",
        "value_dominant",
        "value_recessive",
    )

    DOMINANT = "dominant"
    RECESSIVE = "recessive"

    TRAIT_PLANT_HEIGHT = "plant height"
    TRAIT_SEED_SHAPE = "seed shape"
    TRAIT_SEED_COLOR = "seed color"
    TRAIT_FLOWER_COLOR = "flower color"
    TRAIT_FLOWER_SIZE = "flower size"
    TRAIT_LEAF_SIZE = "leaf size"
    TRAIT_LEAF_SHAPE = "leaf shape"

    def __init__(
        self,
        trait_name: str,
        value_dominant: str,
        value_recessive: str,
        str_suffix: str,
        dominant_or_recessive: str,
    ) -> None:
        self.trait_name = trait_name
        self.value_dominant = value_dominant
        self.value_recessive = value_recessive
        self.str_suffix = str_suffix
        self.dominant_or_recessive = dominant_or_recessive

    def value(self) -> str:
        """Return the value that the allele stands for."""
        if self.dominant_or_recessive == self.DOMINANT:
            return self.value_dominant
        if self.dominant_or_recessive == self.RECESSIVE:
            return self.value_recessive
        raise ValueError(f"an allele is dominant or recessive, not {self.dominant_or_recessive!r}")

    def is_recessive_value(self) -> bool:
        """Say whether the allele is recessive."""
        return self.dominant_or_recessive == self.RECESSIVE

    def mk_human_readable_desc_str(self) -> str:
        """Return the value and the part of the plant that shows it."""
        return f"{self.value()} {self.str_suffix}"

    def crossed(self, other: GeneticTrait) -> GeneticTrait:
        """Return what shows of this allele and the other parent's."""
        recessive = self.is_recessive_value() and other.is_recessive_value()
        shown = self.RECESSIVE if recessive else self.DOMINANT
        return GeneticTrait(
            self.trait_name, self.value_dominant, self.value_recessive, self.str_suffix, shown
        )

    @classmethod
    def mk_random_dom_rec(cls, world: World) -> str:
        """Draw a dominant or a recessive allele."""
        return cls.DOMINANT if world.random.next_int(2) == 0 else cls.RECESSIVE


class Chromosomes:
    """One parent's alleles, one of each trait."""

    __slots__ = ("chromosomes",)

    def __init__(self, chromosomes: Sequence[GeneticTrait]) -> None:
        self.chromosomes = tuple(chromosomes)

    def trait_names(self) -> list[str]:
        """Return the traits' names in order."""
        return [allele.trait_name for allele in self.chromosomes]

    def trait(self, name: str) -> GeneticTrait | None:
        """Return the allele of this trait."""
        for allele in self.chromosomes:
            if allele.trait_name == name:
                return allele
        return None


class ChromosomePair:
    """The alleles of both parents, and what shows of them."""

    __slots__ = ("parent1", "parent2", "phenotypes")

    def __init__(self, parent1: Chromosomes, parent2: Chromosomes) -> None:
        self.parent1 = parent1
        self.parent2 = parent2
        self.phenotypes = {name: self._crossed(name) for name in self.trait_names()}

    def _crossed(self, trait_name: str) -> GeneticTrait:
        allele1, allele2 = self.parent1.trait(trait_name), self.parent2.trait(trait_name)
        if allele1 is None or allele2 is None:
            raise ValueError(f"a parent has no {trait_name}")
        return allele1.crossed(allele2)

    def trait_names(self) -> list[str]:
        """Return each trait's name once, as a Scala set of up to four orders them."""
        # A plant has four traits, and both parents have the same ones in the same order.
        names = list(dict.fromkeys(self.parent1.trait_names() + self.parent2.trait_names()))
        if len(names) > 4:
            raise NotImplementedError("more than four traits")
        return names

    def phenotype_value(self, trait_name: str) -> str | None:
        """Return the value that shows of a trait."""
        shown = self.phenotypes.get(trait_name)
        return None if shown is None else shown.value()

    def trait_phenotype_human_readable_str(self, trait_name: str) -> str | None:
        """Return the value that shows of a trait, and where it shows."""
        shown = self.phenotypes.get(trait_name)
        return None if shown is None else shown.mk_human_readable_desc_str()

    def genotype(self, trait_name: str) -> tuple[GeneticTrait, GeneticTrait] | None:
        """Return both parents' alleles of a trait."""
        allele1, allele2 = self.parent1.trait(trait_name), self.parent2.trait(trait_name)
        return None if allele1 is None or allele2 is None else (allele1, allele2)

    @staticmethod
    def mk_blank() -> ChromosomePair:
        """Return the genes of a plant whose traits the simulation does not know."""
        return ChromosomePair(Chromosomes(()), Chromosomes(()))


class GeneticReproduction:
    """Crosses plants."""

    @staticmethod
    def mate_genes_punnet_square(
        world: World, pair1: ChromosomePair, pair2: ChromosomePair
    ) -> ChromosomePair:
        """Return a child's genes: of each trait a random one of the four combinations."""
        names = dict.fromkeys(pair1.trait_names() + pair2.trait_names())
        drawn = [_cross(world, pair1, pair2, name) for name in names]
        return ChromosomePair(
            Chromosomes([first for first, _ in drawn]), Chromosomes([second for _, second in drawn])
        )


def _cross(
    world: World, pair1: ChromosomePair, pair2: ChromosomePair, name: str
) -> tuple[GeneticTrait, GeneticTrait]:
    genes1, genes2 = pair1.genotype(name), pair2.genotype(name)
    if genes1 is None or genes2 is None:
        raise ValueError(f"a parent has no genes for {name}")
    return world.random.shuffle([(first, second) for first in genes1 for second in genes2])[0]
