"""Things outside: the ground, holes in it, a fire pit and a fountain."""

from __future__ import annotations

from agentgyms.envs.scienceworld.own.objects.base import MODE_CURSORY_DETAIL, EnvObject
from agentgyms.envs.scienceworld.own.objects.containers import Container, add_missing_water
from agentgyms.envs.scienceworld.own.objects.texts import object_list_to_string_description
from agentgyms.envs.scienceworld.own.properties.container import IsOpenUnclosableContainer
from agentgyms.envs.scienceworld.own.properties.materials import CeramicProp, SoilProp
from agentgyms.envs.scienceworld.own.sets import FrozenSet
from agentgyms.envs.scienceworld.own.world import World


class Ground(EnvObject):
    """The ground, which keeps nothing: what lands on it goes to the place around."""

    def __init__(self, world: World) -> None:
        """Make the ground."""
        super().__init__(world)
        self.name = "ground"
        self.prop_material = SoilProp()
        self.prop_container = IsOpenUnclosableContainer()

    def tick(self) -> bool:
        """Hand all that is on the ground to the place around."""
        place = self.container()
        if place is not None:
            # With the hidden terminals of the ground, which move in the first tick.
            for obj in self.contained_objects():
                place.add_object(obj)
        return super().tick()

    def referents(self) -> FrozenSet[str]:
        """Return the names that a command may use."""
        return FrozenSet.of("ground", self.name, self.descript_name())

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Describe the ground."""
        return f"the {self.descript_name()}"


class Hole(Container):
    """A hole in the ground."""

    NAME = "hole"
    NOUNS = ("hole",)
    CONTAINER = IsOpenUnclosableContainer

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Describe the hole, whose terminals make it never empty."""
        contents = self.contained_objects()
        if not contents:
            return f"a hole {self.descript_name()}"
        listed = object_list_to_string_description(contents, self)
        return f"a {self.descript_name()} (containing {listed})"


class FirePit(Container):
    """A fire pit."""

    NAME = "fire pit"
    NOUNS = ("fire pit",)
    CONTAINER = IsOpenUnclosableContainer
    MATERIAL = CeramicProp


class Fountain(Container):
    """A fountain, which never runs dry."""

    NAME = "fountain"
    NOUNS = ("fountain",)
    CONTAINER = IsOpenUnclosableContainer
    MATERIAL = CeramicProp

    def tick(self) -> bool:
        """Fill the fountain."""
        add_missing_water(self)
        return super().tick()
