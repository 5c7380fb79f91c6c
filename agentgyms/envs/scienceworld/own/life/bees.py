"""Bees, which fly about and carry pollen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgyms.envs.scienceworld.own.life.animal_stages import ADULT_FOREVER_CYCLE
from agentgyms.envs.scienceworld.own.life.animals import Animal
from agentgyms.envs.scienceworld.own.life.flowers import Flower, Pollen
from agentgyms.envs.scienceworld.own.objects.base import MODE_CURSORY_DETAIL, MODE_DETAILED
from agentgyms.envs.scienceworld.own.objects.locations import Location
from agentgyms.envs.scienceworld.own.objects.portals import Portal
from agentgyms.envs.scienceworld.own.sets import FrozenSet

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.objects.base import EnvObject, Objects


class WanderingAnimal(Animal):
    """An animal that moves by itself."""

    def move_to_new_location(self) -> bool:
        """Go through a random passable portal, or out of an open container without portals."""
        here = self.container()
        if here is None:
            return False
        portals = [portal for portal in here.portals() if _is_passable(portal)]
        if not portals:
            is_open = here.prop_container is not None and here.prop_container.is_open
            if is_open and not isinstance(here, Location):
                outside = here.container_recursive_of_type(Location)
                if outside is not None:
                    outside.add_object(self)
            return False
        portal = portals[self.world.random.next_int(len(portals))]
        assert isinstance(portal, Portal)
        there = portal.connects_to(here)
        assert there is not None
        there.add_object(self)
        return True

    def referents(self) -> FrozenSet[str]:
        """Return the names by which commands may call it."""
        return FrozenSet(("living thing", "organism", self.name, self.descript_name()))

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Return its text."""
        return f"a {self.descript_name()}. "


class Bee(WanderingAnimal):
    """A bee."""

    NAME = "bee"
    LIFESPAN = 0.10000000149011612
    CYCLE = ADULT_FOREVER_CYCLE
    MAX_POLLEN = 5

    def move_into_flower(self) -> bool:
        """Go into a random flower that is in reach."""
        here = self.container()
        if here is None:
            return False
        flowers = here.contained_accessible_objects_of_type(Flower)
        if not flowers:
            return False
        flowers[self.world.random.next_int(len(flowers))].add_object(self)
        return True

    def collect_pollen(self) -> bool:
        """Take some pollen of this place, unless it carries more than five."""
        here = self.container()
        if here is None or len(self._pollen()) > self.MAX_POLLEN:
            return False
        pollen = here.contained_objects_of_type(Pollen)
        if not pollen:
            return False
        self.add_object(pollen[self.world.random.next_int(len(pollen))])
        return True

    def _pollen(self) -> Objects:
        return self.contained_accessible_objects_of_type(Pollen)

    def is_in_flower(self) -> bool:
        """Say whether it is in a flower."""
        return isinstance(self.container(), Flower)

    def tick(self) -> bool:
        """Collect pollen, visit a flower or fly on, once a tick."""
        if self.was_tick_processed():
            return False
        drawn = self.world.random.next_int(2)
        if self.is_in_flower():
            act = self.collect_pollen if drawn == 0 else self.move_to_new_location
        else:
            act = self.move_into_flower if drawn == 1 else self.move_to_new_location
        act()
        return super().tick()

    def referents(self) -> FrozenSet[str]:
        """Return the names by which commands may call it."""
        return FrozenSet(
            (
                "living thing",
                "organism",
                self.name,
                self.prop_life.lifeform_type,
                self.descript_name(),
            )
        )

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Return its text."""
        if self.prop_life.is_dead:
            return f"a dead {self.descript_name()}"
        text = f"a {self.descript_name()}"
        if self.prop_life.is_sickly:
            text += " (that looks unwell)"
        if mode == MODE_DETAILED and self._pollen():
            text += ", that is covered in pollen"
        return text


def _is_passable(portal: EnvObject) -> bool:
    return isinstance(portal, Portal) and portal.is_currently_passable()
