"""Ways through the house, found as the real engine does: by trying all walks, in drawn order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from agentgyms.envs.scienceworld.own.gold.covering import CoveringWalk
from agentgyms.envs.scienceworld.own.objects.locations import Location
from agentgyms.envs.scienceworld.own.objects.portals import Portal

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.objects.base import EnvObject
    from agentgyms.envs.scienceworld.own.world import World

Graph = dict[str, list[str]]

_STEPS_TO_PLACE = 10
_STEPS_TO_ALL = 20


class Walk(NamedTuple):
    """A walk: where it ends, the walk before its last step, and all places that it has been to."""

    end: str
    before: Walk | None
    seen: frozenset[str]

    def places(self) -> list[str]:
        """Return the places from the first to the last."""
        out: list[str] = []
        walk: Walk | None = self
        while walk is not None:
            out.append(walk.end)
            walk = walk.before
        return out[::-1]


def sanitize(name: str) -> str:
    """Return a name as names are compared."""
    return name.strip().lower()


def build_location_graph(universe: EnvObject) -> Graph:
    """Return the places that portals lead to, of each place."""
    graph: Graph = {}
    for place in universe.contained_objects_and_portals_recursive(True):
        if isinstance(place, Location):
            graph[place.name] = [
                end.name
                for portal in place.portals(include_hidden=False)
                for end in portal.connection_points()
                if sanitize(end.name) != sanitize(place.name)
            ]
    return graph


def _longer(world: World, walks: list[Walk], graph: Graph) -> list[Walk]:
    shuffle = world.random.shuffle
    return [
        Walk(place, walk, walk.seen | {place})
        for walk in walks
        for place in shuffle(graph[walk.end])
    ]


def _first_walk(
    universe: EnvObject, start: str, steps: int, arrived: Callable[[Walk, Graph], bool]
) -> list[str] | None:
    graph = build_location_graph(universe)
    walks = [Walk(start, None, frozenset((start,)))]
    for _ in range(steps):
        walks = _longer(universe.world, walks, graph)
        for walk in walks:
            if arrived(walk, graph):
                return walk.places()
    return None


def location_sequence(universe: EnvObject, start: str, end: str) -> list[str] | None:
    """Return the places of a shortest walk, nothing if one is there already, None without any."""
    if sanitize(start) == sanitize(end):
        return []
    return _first_walk(
        universe, start, _STEPS_TO_PLACE, lambda walk, _: sanitize(walk.end) == sanitize(end)
    )


def search_path_sequence_all_locations(universe: EnvObject, start: str) -> list[str] | None:
    """Return the places of a shortest walk through all places, or None without any."""
    graph = build_location_graph(universe)
    search = CoveringWalk(graph, start, universe.world.random)
    if search.steps <= _STEPS_TO_ALL and search.can_skip():
        return search.places()
    return _first_walk(
        universe, start, _STEPS_TO_ALL, lambda walk, graph: len(walk.seen) == len(graph)
    )


def commands_between(universe: EnvObject, here: str, there: str) -> list[str] | None:
    """Return the commands from a place to one next to it, None if there is no such place."""
    place = env_object(here, universe)
    if place is None:
        return None
    commands = []
    for portal in place.portals():
        if isinstance(portal, Portal) and portal.does_connect_to(there):
            name = longest(portal.referents_from(place))
            commands += [f"open {name}", f"go to {there}"]
    return commands


def longest(names: Iterable[str]) -> str:
    """Return the first of the longest names, which is the least ambiguous."""
    return max(names, key=len)


def env_object(query_name: str, universe: EnvObject) -> EnvObject | None:
    """Return the first thing of a name, wherever it is."""
    wanted = sanitize(query_name)
    for obj in universe.contained_objects_and_portals_recursive(True):
        if wanted in (sanitize(obj.name), sanitize(obj.descript_name())):
            return obj
    return None
