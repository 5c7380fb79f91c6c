"""The real engine's PathFinder: what the tasks' solutions call."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from agentgyms.envs.scienceworld.own.commands.referents import all_unique_referents
from agentgyms.envs.scienceworld.own.gold import walks
from agentgyms.envs.scienceworld.own.gold.running import Runner, current_agent_location, run_action
from agentgyms.envs.scienceworld.own.gold.walks import longest, sanitize
from agentgyms.envs.scienceworld.own.objects.containers import Cup
from agentgyms.envs.scienceworld.own.objects.plumbing import Sink
from agentgyms.envs.scienceworld.own.objects.substances import Water

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agentgyms.envs.scienceworld.own.objects.base import EnvObject

Found = tuple[bool, "EnvObject | None", "EnvObject | None"]


class PathFinder:
    """Finds ways and names; where the engine returns an action and its text, it has the text."""

    @staticmethod
    def create_action_sequence(
        universe: EnvObject, start_location: str, end_location: str
    ) -> list[str]:
        """Return the commands from one place to another."""
        places = walks.location_sequence(universe, start_location, end_location) or []
        commands: list[str] = []
        for here, there in pairwise(places):
            between = walks.commands_between(universe, here, there)
            if between is None:
                return []
            commands += between
        return commands

    @staticmethod
    def create_action_sequence_search_pattern(
        universe: EnvObject, start_location: str
    ) -> list[list[str]]:
        """Return the commands through all places, those from place to place by themselves."""
        places = walks.search_path_sequence_all_locations(universe, start_location) or []
        segments = []
        for here, there in pairwise(places):
            between = walks.commands_between(universe, here, there)
            if between is None:
                return []
            segments.append(between)
        return segments

    @staticmethod
    def create_action_sequence_search_pattern_precomputed(
        universe: EnvObject, start_location: str
    ) -> list[list[str]]:
        """Return the commands through all places, drawn once a world for each start."""
        # The real engine keeps them as long as the JVM runs, over all its games, so that only a
        # JVM's first game of a start draws them. Ours is always such a game.
        known = universe.world.search_patterns
        if start_location not in known:
            known[start_location] = PathFinder.create_action_sequence_search_pattern(
                universe, start_location
            )
        return known[start_location]

    @staticmethod
    def action_focus_on_object(obj: EnvObject, location_perspective: EnvObject) -> str:
        """Return the command that focuses on a thing."""
        name = PathFinder.obj_unique_referent(obj, location_perspective)
        return _unknown(obj) if name is None else f"focus on {name}"

    @staticmethod
    def action_move_object(
        obj: EnvObject, destination: EnvObject, location_perspective: EnvObject
    ) -> str:
        """Return the command that moves a thing."""
        name = PathFinder.obj_unique_referent(obj, location_perspective)
        if name is None:
            return _unknown(obj)
        there = PathFinder.obj_unique_referent(destination, location_perspective)
        return _unknown(destination) if there is None else f"move {name} to {there}"

    @staticmethod
    def action_move_object_from_inventory(
        obj: EnvObject, destination: EnvObject, location_perspective: EnvObject
    ) -> str:
        """Return the command that moves a thing out of the inventory."""
        name = PathFinder.obj_referent(obj) + " in inventory"
        there = PathFinder.obj_unique_referent(destination, location_perspective)
        return _unknown(destination) if there is None else f"move {name} to {there}"

    @staticmethod
    def action_pick_up_object(obj: EnvObject, location_perspective: EnvObject) -> str:
        """Return the command that picks a thing up."""
        name = PathFinder.obj_unique_referent(obj, location_perspective)
        return _unknown(obj) if name is None else f"pick up {name}"

    @staticmethod
    def obj_referent(obj: EnvObject) -> str:
        """Return the longest name of a thing."""
        return longest(obj.referents())

    @staticmethod
    def obj_unique_referent(obj: EnvObject, agent_location: EnvObject) -> str | None:
        """Return the name that means this thing only, seen from a place."""
        for name, found in all_unique_referents(
            agent_location, include_hidden=True, recursive=True
        ):
            if found is obj:
                if len(name) < 2 or name.startswith(" ") or "  " in name:
                    raise RuntimeError(f"the real engine ends itself at the name {name!r}")
                return name
        return None

    @staticmethod
    def known_referent(obj: EnvObject, agent_location: EnvObject) -> str:
        """Return the name that means this thing only, which must be in reach."""
        name = PathFinder.obj_unique_referent(obj, agent_location)
        if name is None:
            raise LookupError("None.get")
        return name

    @staticmethod
    def open_random_closed_container(current_location: EnvObject, runner: Runner) -> bool:
        """Open a closed container in reach, and say whether there was one."""
        in_reach = current_location.contained_accessible_objects(include_hidden=False)
        for obj in current_location.world.random.shuffle(in_reach):
            container = obj.prop_container
            if container is None or not (container.is_container and container.is_closable):
                continue
            if not container.is_open:
                run_action(f"open {PathFinder.known_referent(obj, current_location)}", runner)
                return True
        return False

    @staticmethod
    def water_in_container(
        runner: Runner, use_inventory_container: EnvObject | None = None
    ) -> Found:
        """Fill a cup and return whether that went well, the cup and the water."""
        here = current_agent_location(runner)
        cup = use_inventory_container or _empty_cup(here)
        if cup is None:
            return False, None, None
        water = _water_from_sink(runner, cup, here) or _water_from_pool(runner, cup, here)
        if use_inventory_container is not None:
            run_action(f"pick up {PathFinder.known_referent(cup, here)}", runner)
        return (False, None, None) if water is None else (True, cup, water)

    @staticmethod
    def env_object(query_name: str, universe: EnvObject) -> EnvObject | None:
        """Return the first thing of a name, wherever it is."""
        return walks.env_object(query_name, universe)

    @staticmethod
    def all_env_object(query_name: str, universe: EnvObject) -> list[EnvObject]:
        """Return all things of a name, wherever they are."""
        return _named(query_name, universe.contained_objects_and_portals_recursive(True))

    @staticmethod
    def all_accessible_env_object(query_name: str, universe: EnvObject) -> list[EnvObject]:
        """Return all things of a name that are in reach."""
        return _named(query_name, universe.contained_accessible_objects(True))


def _unknown(obj: EnvObject) -> str:
    return f"ERROR FINDING UNIQUE REFERENT FOR ({obj.name})"


def _named(query_name: str, objs: Iterable[EnvObject]) -> list[EnvObject]:
    wanted = sanitize(query_name)
    return [obj for obj in objs if wanted in (sanitize(obj.name), sanitize(obj.descript_name()))]


def _empty_cup(here: EnvObject) -> EnvObject | None:
    for cup in here.contained_accessible_objects_of_type(Cup):
        if not cup.contained_objects(include_hidden=False):
            return cup
    return None


def _water_from_sink(runner: Runner, cup: EnvObject, here: EnvObject) -> EnvObject | None:
    sinks = here.contained_accessible_objects_of_type(Sink)
    if not sinks:
        return None
    known = PathFinder.known_referent
    run_action(f"move {known(cup, here)} to {known(sinks[0], here)}", runner)
    run_action(f"activate {known(sinks[0], here)}", runner)
    run_action(f"deactivate {known(sinks[0], here)}", runner)
    water = cup.contained_accessible_objects_of_type(Water)
    return water[0] if water else None


def _water_from_pool(runner: Runner, cup: EnvObject, here: EnvObject) -> EnvObject | None:
    """Fill a cup with other water, and return the water that it was dunked into."""
    known = PathFinder.known_referent
    for water in here.contained_accessible_objects_of_type(Water):
        pool = water.container()
        assert pool is not None
        run_action(f"dunk {known(cup, here)} into {known(pool, here)}", runner)
        if cup.contained_accessible_objects_of_type(Water):
            return water
    return None
