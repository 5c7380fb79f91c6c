"""Living things."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgyms.envs.scienceworld.own.objects.base import MODE_CURSORY_DETAIL, EnvObject
from agentgyms.envs.scienceworld.own.sets import FrozenSet

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.life.cycles import LifeCycle
    from agentgyms.envs.scienceworld.own.life.genetics import ChromosomePair
    from agentgyms.envs.scienceworld.own.life.properties import LifeProperties
    from agentgyms.envs.scienceworld.own.properties.material import MaterialProperties
    from agentgyms.envs.scienceworld.own.world import World


class LivingThing(EnvObject):
    """A plant or an animal."""

    def __init__(self, world: World) -> None:
        super().__init__(world, "living thing")
        self.lifecycle: LifeCycle | None = None

    def referents(self) -> FrozenSet[str]:
        """Return the names by which commands may call it."""
        return FrozenSet(("living thing", "organism", self.name, self.descript_name()))

    def mk_genetic_traits_str(self) -> str:
        """Return what shows of its genes."""
        return ""

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Return its text."""
        return f"a {self.descript_name()}. "


class FloweringThing(LivingThing):
    """A plant, as its flowers and the stages of its life see it."""

    prop_life: LifeProperties
    prop_material: MaterialProperties

    def plant_type(self) -> str:
        """Return the kind of plant."""
        return self.prop_life.lifeform_type

    def mk_fruit(self, parent2: ChromosomePair | None) -> EnvObject | None:
        """Return a new fruit, crossed with another plant's genes; None from one that has none."""
        return None
