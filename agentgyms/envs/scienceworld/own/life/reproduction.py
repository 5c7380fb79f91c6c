"""Which plant a seed becomes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgyms.envs.scienceworld.own.life import crossed, trees

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.objects.base import EnvObject
    from agentgyms.envs.scienceworld.own.world import World

_TREES: dict[str, type[trees.FruitingTree]] = {
    "apple": trees.AppleTree,
    "apricot": trees.ApricotTree,
    "avocado": trees.AvocadoTree,
    "banana": trees.BananaTree,
    "cherry": trees.CherryTree,
    "grapefruit": trees.GrapefruitTree,
    "lemon": trees.LemonTree,
    "orange": trees.OrangeTree,
    "peach": trees.PeachTree,
    "pear": trees.PearTree,
}
_CROSSED: dict[str, type[crossed.CrossedPlant]] = {
    "pea": crossed.PeaPlant,
    "unknown B": crossed.RandomGeneticsPlantsB,
    "unknown C": crossed.RandomGeneticsPlantsC,
    "unknown D": crossed.RandomGeneticsPlantsD,
    "unknown E": crossed.RandomGeneticsPlantsE,
}


class PlantReproduction:
    """The kinds of plants, and the maker of their seeds."""

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
    def create_seed(world: World, plant_type: str) -> EnvObject | None:
        """Return a new seed."""
        if plant_type in _TREES:
            return _TREES[plant_type](world)
        if plant_type in _CROSSED:
            return _CROSSED[plant_type](world)
        return None
