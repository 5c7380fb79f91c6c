"""Living things."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgyms.envs.scienceworld.own.objects.base import MODE_CURSORY_DETAIL, EnvObject
from agentgyms.envs.scienceworld.own.sets import FrozenSet

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.life.cycles import LifeCycle
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
