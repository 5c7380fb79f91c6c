"""Which fruit a plant bears, and which plant a seed becomes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgyms.envs.scienceworld.own.life import crossed, fruits, trees
from agentgyms.envs.scienceworld.own.life.genetics import ChromosomePair, GeneticReproduction

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.objects.base import EnvObject
    from agentgyms.envs.scienceworld.own.world import World

_TREES: dict[str, tuple[type[fruits.Fruit], type[trees.FruitingTree]]] = {
    "apple": (fruits.Apple, trees.AppleTree),
    "apricot": (fruits.Apricot, trees.ApricotTree),
    "avocado": (fruits.Avocado, trees.AvocadoTree),
    "banana": (fruits.Banana, trees.BananaTree),
    "cherry": (fruits.Cherry, trees.CherryTree),
    "grapefruit": (fruits.Grapefruit, trees.GrapefruitTree),
    "lemon": (fruits.Lemon, trees.LemonTree),
    "orange": (fruits.Orange, trees.OrangeTree),
    "peach": (fruits.Peach, trees.PeachTree),
    "pear": (fruits.Pear, trees.PearTree),
}
_CROSSED: dict[str, type[crossed.CrossedPlant]] = {
    "pea": crossed.PeaPlant,
    "unknown B": crossed.RandomGeneticsPlantsB,
    "unknown C": crossed.RandomGeneticsPlantsC,
    "unknown D": crossed.RandomGeneticsPlantsD,
    "unknown E": crossed.RandomGeneticsPlantsE,
}


class PlantReproduction:
    """The kinds of plants, and makers of their fruits and seeds."""

    PLANT_APPLE = "apple"
    PLANT_APRICOT = "apricot"
    PLANT_AVOCADO = "avocado"
    PLANT_BANANA = "banana"
    PLANT_CHERRY = "cherry"
    PLANT_GRAPEFRUIT = "grapefruit"
    PLANT_LEMON = "lemon"
    PLANT_ORANGE = "orange"
    PLANT_PEACH = "peach"
    PLANT_PEAR = "pear"
    PLANT_PEA = "pea"
    PLANT_RANDOMGENETICS_B = "unknown B"
    PLANT_RANDOMGENETICS_C = "unknown C"
    PLANT_RANDOMGENETICS_D = "unknown D"
    PLANT_RANDOMGENETICS_E = "unknown E"

    @staticmethod
    def create_fruit(
        world: World,
        plant_type: str,
        parent1_chromosomes: ChromosomePair | None,
        parent2_chromosomes: ChromosomePair | None,
    ) -> EnvObject | None:
        """Return a new fruit; that of a plant with genes is a seed with both parents' genes."""
        mated = None
        if parent1_chromosomes is not None and parent2_chromosomes is not None:
            mated = GeneticReproduction.mate_genes_punnet_square(
                world, parent1_chromosomes, parent2_chromosomes
            )
        if plant_type in _TREES:
            return _TREES[plant_type][0](world)
        if plant_type in _CROSSED:
            return _CROSSED[plant_type](world, mated)
        return None

    @staticmethod
    def create_seed(world: World, plant_type: str) -> EnvObject | None:
        """Return a new seed."""
        if plant_type in _TREES:
            return _TREES[plant_type][1](world)
        if plant_type in _CROSSED:
            return _CROSSED[plant_type](world)
        return None
