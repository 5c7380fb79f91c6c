"""The building, and the agent in it."""

from __future__ import annotations

from operator import attrgetter
from typing import Final

from agentgyms.envs.scienceworld.own.house import rooms
from agentgyms.envs.scienceworld.own.objects.agent import Agent
from agentgyms.envs.scienceworld.own.objects.containers import Sewer
from agentgyms.envs.scienceworld.own.objects.devices import Shovel
from agentgyms.envs.scienceworld.own.objects.locations import Location, Universe
from agentgyms.envs.scienceworld.own.world import World

_DOORS: Final = (
    ("kitchen", "hallway"),
    ("living room", "hallway"),
    ("bedroom", "hallway"),
    ("bathroom", "kitchen"),
    ("workshop", "hallway"),
    ("greenhouse", "hallway"),
    ("art studio", "hallway"),
    ("kitchen", "outside"),
    ("greenhouse", "outside"),
    ("foundry", "outside"),
)


def mk_kitchen_environment(world: World, seed: int) -> tuple[Universe, Agent]:
    """Seed the generator, and return the house with an agent in one of its rooms."""
    world.random.set_seed(seed)
    universe = Universe(world)
    sewer = Sewer(world)
    universe.add_object(sewer)
    mk_random_house(universe, sewer)
    agent = Agent(world)
    locations = sorted(universe.contained_objects_of_type(Location), key=attrgetter("name"))
    locations[world.random.next_int(len(locations))].add_object(agent)
    return universe, agent


def mk_random_house(universe: Universe, sewer: Sewer) -> None:
    """Add the rooms to the universe, a shovel to one of two, and the doors between them."""
    world = universe.world
    places: list[Location] = []
    for place in _rooms(world, sewer):
        universe.add_object(place)
        places.append(place)
    by_name = {place.name: place for place in places}
    shovel = Shovel(world)
    where = "greenhouse" if world.random.next_int(2) == 1 else "outside"
    by_name[where].add_object(shovel)
    for one, other in _DOORS:
        rooms.make_door(by_name[one], by_name[other])


def _rooms(world: World, sewer: Sewer) -> list[Location]:
    return [
        rooms.make_kitchen(world, sewer),
        rooms.make_living_room(world),
        rooms.make_bedroom(world),
        rooms.make_bathroom(world, sewer),
        rooms.make_workshop(world),
        rooms.make_greenhouse(world, sewer),
        rooms.make_art_studio(world),
        rooms.make_hallway(world),
        rooms.make_outside(world),
        rooms.make_foundry(world, sewer),
    ]
