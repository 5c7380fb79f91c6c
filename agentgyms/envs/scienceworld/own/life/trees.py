"""Fruiting trees."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from agentgyms.envs.scienceworld.own.life import fruits
from agentgyms.envs.scienceworld.own.life.plants import Plant
from agentgyms.envs.scienceworld.own.properties.simple import Edible
from agentgyms.envs.scienceworld.own.sets import FrozenSet

if TYPE_CHECKING:
    from typing import Self

    from agentgyms.envs.scienceworld.own.life.genetics import ChromosomePair
    from agentgyms.envs.scienceworld.own.objects.base import EnvObject
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
    FRUIT: ClassVar[type[fruits.Fruit]]

    def mk_fruit(self, parent2: ChromosomePair | None) -> EnvObject:
        """Return a new fruit; a tree has no genes to cross."""
        return self.FRUIT(self.world)

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
    FRUIT = fruits.Apple


class AvocadoTree(FruitingTree):
    """An avocado tree."""

    LIFEFORM_TYPE = "avocado"
    FRUIT = fruits.Avocado


class ApricotTree(FruitingTree):
    """An apricot tree."""

    LIFEFORM_TYPE = "apricot"
    FRUIT = fruits.Apricot


class BananaTree(FruitingTree):
    """A banana tree."""

    LIFEFORM_TYPE = "banana"
    FRUIT = fruits.Banana


class CherryTree(FruitingTree):
    """A cherry tree."""

    LIFEFORM_TYPE = "cherry"
    FRUIT = fruits.Cherry


class GrapefruitTree(FruitingTree):
    """A grapefruit tree."""

    LIFEFORM_TYPE = "grapefruit"
    FRUIT = fruits.Grapefruit


class LemonTree(FruitingTree):
    """A lemon tree."""

    LIFEFORM_TYPE = "lemon"
    FRUIT = fruits.Lemon


class OrangeTree(FruitingTree):
    """An orange tree."""

    LIFEFORM_TYPE = "orange"
    FRUIT = fruits.Orange


class PeachTree(FruitingTree):
    """A peach tree."""

    LIFEFORM_TYPE = "peach"
    FRUIT = fruits.Peach


class PearTree(FruitingTree):
    """A pear tree."""

    LIFEFORM_TYPE = "pear"
    FRUIT = fruits.Pear
