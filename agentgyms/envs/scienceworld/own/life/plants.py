"""Plants, and the soil that they grow in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgyms.envs.scienceworld.own.life.living import FloweringThing
from agentgyms.envs.scienceworld.own.life.plant_stages import PLANT_STAGE_SEED, PlantLifeStages
from agentgyms.envs.scienceworld.own.life.properties import LifeProperties
from agentgyms.envs.scienceworld.own.objects.base import MODE_CURSORY_DETAIL, EnvObject
from agentgyms.envs.scienceworld.own.objects.texts import object_list_to_string_description
from agentgyms.envs.scienceworld.own.properties.container import IsOpenUnclosableContainer
from agentgyms.envs.scienceworld.own.properties.materials import PlantMatterProp, SoilProp
from agentgyms.envs.scienceworld.own.sets import FrozenSet

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.life.cycles import LifeCycle
    from agentgyms.envs.scienceworld.own.world import World


class Plant(FloweringThing):
    """A plant, from seed to death; it is named after the kind that it is of."""

    lifecycle: LifeCycle

    LIFEFORM_TYPE = "plant"
    GROWN = "plant"  # how a grown one is called

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.name = "plant"
        self.obj_type = "plant"
        self.prop_life = LifeProperties(self.LIFEFORM_TYPE)
        self.prop_material = PlantMatterProp()
        self.prop_container = IsOpenUnclosableContainer()
        self.lifecycle = PlantLifeStages.mk_plant_life_cycle(self)

    def is_seed(self) -> bool:
        """Say whether it is a seed."""
        return self.lifecycle.cur_stage_name() == PLANT_STAGE_SEED

    def plant_name(self) -> str:
        """Return the kind, and whether it is a seed."""
        grown = "seed" if self.is_seed() else self.GROWN
        return self.descript_name(f"{self.prop_life.lifeform_type} {grown}")

    def tick(self) -> bool:
        """Live on by a tick."""
        # The life cycle goes on even in a tick that was processed already.
        self.lifecycle.tick()
        return super().tick()

    def referents(self) -> FrozenSet[str]:
        """Return the names by which commands may call it."""
        stage, descript = self.lifecycle.cur_stage_name(), self.descript_name()
        return self._with_health(
            FrozenSet(
                (
                    "living thing",
                    "organism",
                    self.name,
                    f"{self.name} in the {stage} stage",
                    f"{stage} plant",
                    descript,
                    f"{descript} in the {stage} stage",
                )
            )
        )

    def _with_health(self, names: FrozenSet[str]) -> FrozenSet[str]:
        if not self.prop_life.is_sickly:
            return names
        return names.union(names.map("sick {}".format))

    def seed_description(self, plant_name: str) -> str:
        """Return a seed's text."""
        return f"a {plant_name}"

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Return its text, and that of what is on it."""
        plant_name = self.plant_name()
        if self.prop_life.is_dead:
            return f"a dead {plant_name}"
        if self.is_seed():
            return self.seed_description(plant_name)
        text = f"a {plant_name} in the {self.lifecycle.cur_stage_name()} stage"
        text += self.mk_genetic_traits_str()
        if self.prop_life.is_sickly:
            text += " (that looks unwell)"
        contained = self.contained_objects_not_hidden()
        if not contained:
            return text
        seen = object_list_to_string_description(
            contained, self, MODE_CURSORY_DETAIL, multiline=False
        )
        return f"{text}. On the {plant_name} you see: {seen}. "


class Soil(EnvObject):
    """Soil, which plants need."""

    def __init__(self, world: World) -> None:
        super().__init__(world, "soil")
        self.prop_material = SoilProp()

    def referents(self) -> FrozenSet[str]:
        """Return the names by which commands may call it."""
        return FrozenSet(("soil", self.name, self.descript_name()))

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Return its text."""
        return self.descript_name()
