"""Fruiting trees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgyms.envs.scienceworld.own.life.plants import Plant
from agentgyms.envs.scienceworld.own.properties.simple import Edible
from agentgyms.envs.scienceworld.own.sets import FrozenSet

if TYPE_CHECKING:
    from typing import Self

    from agentgyms.envs.scienceworld.own.world import World


class Tree(Plant):
    """A tree."""


class SeedEater(Tree):
    """A tree or plant of a known kind, whose seeds can be eaten and which its kind names."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.edibility = Edible()
        self.prop_edibility = self.edibility

    def tick(self) -> bool:
        """Rename it after its stage, and live on by a tick."""
        # A new one is called `plant` or so until its first tick.
        self.name = self.plant_name()
        self.edibility.is_edible = self.is_seed()
        return super().tick()


class FruitingTree(SeedEater):
    """A tree that bears fruits."""

    GROWN = "tree"

    def referents(self) -> FrozenSet[str]:
        """Return the names by which commands may call it."""
        plant, stage = self.plant_name(), self.lifecycle.cur_stage_name()
        descript = self.descript_name()
        return self._with_health(
            FrozenSet(
                (
                    "living thing",
                    "organism",
                    self.name,
                    f"{self.name} in the {stage} stage",
                    f"{stage} plant",
                    plant,
                    f"{plant} in the {stage} stage",
                    f"{stage} {plant}",
                    descript,
                    f"{descript} in the {stage} stage",
                )
            )
        )

    @classmethod
    def mk_examples_at_life_stages(cls, world: World) -> list[Self]:
        """Return a tree at each stage."""
        # The real engine makes one tree more, to see the stages, which takes an identifier.
        stages = [stage.stage_name for stage in cls(world).lifecycle.stages]
        examples = []
        for stage in stages:
            tree = cls(world)
            tree.lifecycle.change_stage(stage)
            examples.append(tree)
        return examples


class AppleTree(FruitingTree):
    """An apple tree."""

    LIFEFORM_TYPE = "apple"


class AvocadoTree(FruitingTree):
    """An avocado tree."""

    LIFEFORM_TYPE = "avocado"


class ApricotTree(FruitingTree):
    """An apricot tree."""

    LIFEFORM_TYPE = "apricot"


class BananaTree(FruitingTree):
    """A banana tree."""

    LIFEFORM_TYPE = "banana"


class CherryTree(FruitingTree):
    """A cherry tree."""

    LIFEFORM_TYPE = "cherry"


class GrapefruitTree(FruitingTree):
    """A grapefruit tree."""

    LIFEFORM_TYPE = "grapefruit"


class LemonTree(FruitingTree):
    """A lemon tree."""

    LIFEFORM_TYPE = "lemon"


class OrangeTree(FruitingTree):
    """An orange tree."""

    LIFEFORM_TYPE = "orange"


class PeachTree(FruitingTree):
    """A peach tree."""

    LIFEFORM_TYPE = "peach"


class PearTree(FruitingTree):
    """A pear tree."""

    LIFEFORM_TYPE = "pear"
