"""What the solutions of several tasks do in the greenhouse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentgyms.envs.scienceworld.own.gold.solver import Solver
from agentgyms.envs.scienceworld.own.life.living import LivingThing
from agentgyms.envs.scienceworld.own.life.plant_stages import PLANT_STAGE_REPRODUCING
from agentgyms.envs.scienceworld.own.life.plants import Plant, Soil
from agentgyms.envs.scienceworld.own.objects.containers import (
    FlowerPot,
    Jug,
    SelfWateringFlowerPot,
)
from agentgyms.envs.scienceworld.own.objects.devices import Shovel
from agentgyms.envs.scienceworld.own.objects.furniture import BeeHive
from agentgyms.envs.scienceworld.own.objects.plumbing import Sink
from agentgyms.envs.scienceworld.own.sets import union

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.gold.running import Runner
    from agentgyms.envs.scienceworld.own.objects.base import EnvObject

GREENHOUSE = "greenhouse"
_MAX_ATTEMPTS = 4


class Garden(Solver):
    """A solution's pots in drawn order: `ready` with soil, `bare` without, `planted` ones."""

    def __init__(self, runner: Runner) -> None:
        super().__init__(runner)
        self.ready: list[EnvObject] = []
        self.bare: list[EnvObject] = []
        self.planted: list[EnvObject] = []
        self._tools: tuple[EnvObject, EnvObject] | None = None

    # --- jars, pots and soil ---

    def fetch_jar(self, place: str) -> EnvObject | None:
        """Go to where the seed jar is and pick it up; return it, or None if there is none."""
        self.go(place)
        self.run("look around")
        jars = self.find("seed jar")
        if not jars:
            return None
        self.run("pick up seed jar")
        return jars[0]

    def sort_pots(self, *, by_number: bool) -> None:
        """Look around for flower pots, and note those with soil and those without."""
        self.run("look around")
        pots = union(self.in_reach(FlowerPot), self.in_reach(SelfWateringFlowerPot))
        shuffle = self.runner.universe.world.random.shuffle
        for pot in self.drawn(pots) if by_number else shuffle(pots):
            has_soil = pot.contained_accessible_objects_of_type(Soil)
            (self.ready if has_soil else self.bare).append(pot)

    def prepare_pots(self, count: int) -> bool:
        """Put soil into pots until there are as many; say whether a few attempts were enough."""
        attempts = 0
        while len(self.ready) < count:
            self.fill_pot()
            attempts += 1
            if attempts > _MAX_ATTEMPTS:
                return False
        return True

    def fill_pot(self) -> None:
        """Put soil into the next pot without: some of the greenhouse, or else from outside."""
        soil = self.here().contained_objects_of_type(Soil)
        pot = self.bare[0]
        if soil:
            self.run(f"move {self.known(soil[0])} to {self.known(pot)}")
        else:
            self._dig()
            self.run(f"move soil in inventory to {self.known(pot)}")
        del self.bare[0]
        self.ready.append(pot)

    def _dig(self) -> None:
        has_shovel = self._take_shovel()
        self.go("outside")
        if not has_shovel:
            self._take_shovel()
        self.run("use shovel in inventory on ground")
        self.run("pick up soil")
        self.go(GREENHOUSE)

    def _take_shovel(self) -> bool:
        if not self.in_reach(Shovel):
            return False
        self.run("pick up shovel")
        return True

    def plant(self, seed_type: str, count: int) -> None:
        """Put a seed into each of the next pots with soil."""
        for _ in range(count):
            pot = self.ready[0]
            self.run(f"move {seed_type} seed in seed jar to {self.known(pot)}")
            self.planted.append(pot)
            del self.ready[0]

    # --- water and bees ---

    def water(self) -> None:
        """Water the planted pots with the jug."""
        if self._tools is None:
            self._tools = (self.in_reach(Jug)[0], self.in_reach(Sink)[0])
        jug, sink = self._tools
        self.run(f"activate {self.known(sink)}")
        for pot in self.planted:
            self.run(f"move {self.known(jug)} to {self.known(sink)}")
            self.run(f"pour {self.known(jug)} into {self.known(pot)}")
        self.run(f"deactivate {self.known(sink)}")

    def wait(self, turns: int) -> None:
        """Wait, a turn at a time."""
        for _ in range(turns):
            self.run("wait1")

    def blooms(self) -> bool:
        """Say whether a planted pot has a plant that reproduces."""
        return any(
            stage_of(plant) == PLANT_STAGE_REPRODUCING
            for pot in self.planted
            for plant in pot.contained_accessible_objects_of_type(Plant)
        )

    def release_bees(self) -> None:
        """Close all doors and open the bee hive."""
        for portal in self.here().portals(include_hidden=False):
            self.run(f"close {self.known(portal)}")
        self.run(f"open {self.known(self.in_reach(BeeHive)[0])}")


def stage_of(obj: EnvObject) -> str:
    """Return the stage of a living thing."""
    assert isinstance(obj, LivingThing)
    assert obj.lifecycle is not None
    return obj.lifecycle.cur_stage_name()


def in_stages(objs: Sequence[EnvObject], *stages: str) -> list[EnvObject]:
    """Return the living things that are in one of some stages."""
    return [obj for obj in objs if stage_of(obj) in stages]
