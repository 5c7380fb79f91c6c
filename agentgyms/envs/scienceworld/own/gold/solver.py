"""What the solutions of all tasks do: go, look for things, and run commands with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from agentgyms.envs.scienceworld.own.gold.path_finder import PathFinder
from agentgyms.envs.scienceworld.own.gold.running import (
    Runner,
    current_agent_location,
    run_action_sequence,
)
from agentgyms.envs.scienceworld.own.objects.circuits.parts import (
    PolarizedElectricalComponent,
    UnpolarizedElectricalComponent,
)

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.objects.base import EnvObject, Objects


class Solver:
    """Plays a game as the engine's solutions do."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner

    def here(self) -> EnvObject:
        """Return the place that the agent is in."""
        return current_agent_location(self.runner)

    def run(self, *actions: str) -> None:
        """Run commands one by one."""
        run_action_sequence(actions, self.runner)

    def known(self, obj: EnvObject) -> str:
        """Return the name that means this thing only; `LookupError` if there is none."""
        return PathFinder.known_referent(obj, self.here())

    def go(self, place: str) -> None:
        """Go to a place."""
        way = PathFinder.create_action_sequence(self.runner.universe, self.here().name, place)
        self.run(*way)

    def pick_up(self, obj: EnvObject) -> None:
        """Pick a thing up."""
        self.run(f"pick up {self.known(obj)}")

    def move(self, obj: EnvObject, there: EnvObject) -> None:
        """Move a thing into another."""
        self.run(f"move {self.known(obj)} to {self.known(there)}")

    def find(self, name: str) -> list[EnvObject]:
        """Return the things of a name that are in reach."""
        return PathFinder.all_accessible_env_object(name, self.here())

    def in_reach(self, kind: type) -> Objects:
        """Return the things of a class that are in reach."""
        return self.here().contained_accessible_objects_of_type(kind)

    def drawn(self, objs: Iterable[EnvObject]) -> list[EnvObject]:
        """Return things in drawn order, which does not depend on the order of the set."""
        ordered = sorted(objs, key=lambda obj: obj.uuid)
        return self.runner.universe.world.random.shuffle(ordered)

    def walk(self) -> Sequence[Sequence[str]]:
        """Return the commands through all places, those from place to place by themselves."""
        return PathFinder.create_action_sequence_search_pattern_precomputed(
            self.runner.universe, self.here().name
        )

    def open_until_found(self, name: str, attempts: int) -> list[EnvObject]:
        """Open containers here until a thing of a name is in reach; return what is then."""
        opened = True
        for _ in range(attempts):
            if self.find(name) or not opened:
                break
            opened = PathFinder.open_random_closed_container(self.here(), self.runner)
        return self.find(name)

    def walk_until_found(self, name: str) -> list[EnvObject]:
        """Go through all places until a thing of a name is in reach; return what is then."""
        for commands in self.walk():
            found = self.find(name)
            if found:
                return found
            self.run(*commands, "look around")
        return self.find(name)

    def fetch_water(self, cup: EnvObject | None = None) -> tuple[EnvObject, EnvObject] | None:
        """Fill a cup, here or elsewhere; return the cup and the water, or None without any."""
        filled = self._fill(cup)
        if filled is not None:
            return filled
        for commands in self.walk():
            filled = self._fill(cup)
            if filled is not None:
                return filled
            self.run(*commands, "look around")
        return self._fill(cup)

    def _fill(self, cup: EnvObject | None) -> tuple[EnvObject, EnvObject] | None:
        worked, filled, water = PathFinder.water_in_container(self.runner, cup)
        if not worked:
            return None
        assert filled is not None
        assert water is not None
        return filled, water

    def ends(self, component: EnvObject) -> tuple[str, str]:
        """Return the names of the anode and cathode of a part, or of its two terminals."""
        if isinstance(component, PolarizedElectricalComponent):
            return self.known(component.anode), self.known(component.cathode)
        if isinstance(component, UnpolarizedElectricalComponent):
            assert component.terminal1 is not None
            assert component.terminal2 is not None
            return self.known(component.terminal1), self.known(component.terminal2)
        return "", ""


def is_solid(obj: EnvObject) -> bool:
    """Tell whether a thing is solid; one without a material counts as solid."""
    return obj.prop_material is None or obj.prop_material.state_of_matter == "solid"


def holder_of(obj: EnvObject) -> EnvObject:
    """Return the thing that a thing is in."""
    holder = obj.container()
    if holder is None:
        raise LookupError("None.get")
    return holder
