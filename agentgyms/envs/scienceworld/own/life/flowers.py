"""Pollen and flowers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from agentgyms.envs.scienceworld.own.life.genetics import ChromosomePair, GeneticTrait
from agentgyms.envs.scienceworld.own.life.properties import PollinationProperties
from agentgyms.envs.scienceworld.own.objects.base import (
    MODE_CURSORY_DETAIL,
    MODE_DETAILED,
    EnvObject,
)
from agentgyms.envs.scienceworld.own.objects.texts import object_list_to_string_description
from agentgyms.envs.scienceworld.own.properties.container import (
    IsNotContainer,
    IsOpenUnclosableContainer,
)
from agentgyms.envs.scienceworld.own.properties.materials import FlowerMatterProp, PollenMatterProp
from agentgyms.envs.scienceworld.own.sets import FrozenSet

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.life.living import FloweringThing
    from agentgyms.envs.scienceworld.own.world import World

_SPACES = re.compile(r"[ \t\n\x0b\f\r]+")


class Pollen(EnvObject):
    """A plant's pollen, which carries its genes."""

    def __init__(self, world: World, parent_plant: FloweringThing) -> None:
        super().__init__(world, "pollen")
        self.parent_plant = parent_plant
        self.prop_container = IsNotContainer()
        self.prop_material = PollenMatterProp()

    def chromosome_pair(self) -> ChromosomePair:
        """Return the plant's genes."""
        return self.parent_plant.prop_chromosome_pairs or ChromosomePair.mk_blank()

    def plant_type(self) -> str:
        """Return the plant's kind."""
        return self.parent_plant.plant_type()

    def referents(self) -> FrozenSet[str]:
        """Return the names by which commands may call it."""
        return FrozenSet(("pollen", self.name, f"{self.plant_type()} pollen", self.descript_name()))

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Return its text."""
        # The real engine leaves no space between the plant's kind and the name.
        kind = self.plant_type() if mode == MODE_DETAILED else ""
        return kind + self.descript_name()


class Flower(EnvObject):
    """A plant's flower, which becomes a fruit once another plant's pollen reaches it."""

    def __init__(self, world: World, parent_plant: FloweringThing) -> None:
        super().__init__(world, "flower")
        self.parent_plant = parent_plant
        self.prop_container = IsOpenUnclosableContainer()
        self.prop_material = FlowerMatterProp()
        self.pollination = PollinationProperties()
        self.prop_pollination = self.pollination

    def pollinate(self, pollen: Pollen) -> bool:
        """Use up another plant's pollen of the same kind, and say whether it was that."""
        if pollen.parent_plant is self.parent_plant:
            return False
        if pollen.plant_type() != self.parent_plant.plant_type():
            return False
        pollen.delete()
        self.pollination.pollination_step = 1
        self.pollination.parent2_chromosome_pairs = pollen.chromosome_pair()
        return True

    def add_pollen(self) -> None:
        """Grow the plant's own pollen if there is none."""
        for obj in self.contained_objects():
            if isinstance(obj, Pollen) and obj.parent_plant is self.parent_plant:
                return
        self.add_object(Pollen(self.world, self.parent_plant))

    def mk_genetic_traits_str(self) -> str:
        """Return what a flower shows of the plant's genes."""
        genes = self.parent_plant.prop_chromosome_pairs
        if genes is None:
            return ""
        size = genes.phenotype_value(GeneticTrait.TRAIT_FLOWER_SIZE)
        color = genes.phenotype_value(GeneticTrait.TRAIT_FLOWER_COLOR)
        return " ".join(trait for trait in (size, color) if trait)

    def tick(self) -> bool:
        """Ripen, or grow pollen and wait for another plant's."""
        # It does so even in a tick that was processed already.
        if self.pollination.pollination_step > 0:
            self._ripen()
        else:
            self.add_pollen()
            self._find_pollen()
        return super().tick()

    def _ripen(self) -> None:
        self.pollination.pollination_step += 1
        if self.pollination.pollination_step <= self.pollination.steps_until_fruiting_body_forms:
            return
        container = self.container()
        if container is None:
            return
        fruit = self.parent_plant.mk_fruit(self.pollination.parent2_chromosome_pairs)
        if fruit is not None:
            container.add_object(fruit)
        self.delete(expel_contents=True)

    def _find_pollen(self) -> None:
        for obj in self.contained_objects():
            found = (obj,) if isinstance(obj, Pollen) else obj.contained_objects()
            for pollen in found:
                if isinstance(pollen, Pollen) and self.pollinate(pollen):
                    return

    def _is_wilting(self) -> bool:
        return self.pollination.pollination_step > 0

    def referents(self) -> FrozenSet[str]:
        """Return the names by which commands may call it."""
        descript = self.descript_name()
        if not self._is_wilting():
            return FrozenSet(("flower", self.name, descript))
        return FrozenSet(
            (
                "flower",
                self.name,
                "wilting flower",
                f"wilting {self.name}",
                descript,
                f"wilting {descript}",
            )
        )

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Return its text."""
        state = "a wilting" if self._is_wilting() else "a"
        text = f"{state} {self.mk_genetic_traits_str()} {self.descript_name()}"
        if mode == MODE_DETAILED:
            inside = object_list_to_string_description(
                self.contained_objects_not_hidden(), self, MODE_CURSORY_DETAIL, multiline=False
            )
            text += f". Inside the flower is: {inside}"
        return _SPACES.sub(" ", text).strip()
