"""Rooms of the house, with what the engine puts into them, in its order."""

from __future__ import annotations

from agentgyms.envs.scienceworld.own.life.bees import Bee
from agentgyms.envs.scienceworld.own.life.food import OrangeJuice, Potato
from agentgyms.envs.scienceworld.own.life.fruits import Apple, Banana, Orange
from agentgyms.envs.scienceworld.own.objects.base import EnvObject
from agentgyms.envs.scienceworld.own.objects.circuits.parts import Battery, LightBulb, Switch, Wire
from agentgyms.envs.scienceworld.own.objects.containers import (
    BookShelf,
    CeramicCup,
    GlassCup,
    GlassJar,
    Jug,
    MetalPot,
    TinCup,
    WoodBowl,
    WoodCup,
)
from agentgyms.envs.scienceworld.own.objects.cooling import Freezer, Fridge, UltraColdFreezer
from agentgyms.envs.scienceworld.own.objects.devices import Axe, StopWatch, Thermometer
from agentgyms.envs.scienceworld.own.objects.furniture import (
    Bed,
    BeeHive,
    Chair,
    Closet,
    Couch,
    Counter,
    Cupboard,
    Desk,
    SteelTable,
    WoodTable,
)
from agentgyms.envs.scienceworld.own.objects.heating import BlastFurnace, Lighter, Oven, Stove
from agentgyms.envs.scienceworld.own.objects.locations import (
    FirePit,
    Fountain,
    Location,
    Outside,
    Room,
)
from agentgyms.envs.scienceworld.own.objects.misc import Picture
from agentgyms.envs.scienceworld.own.objects.paint import BluePaint, RedPaint, YellowPaint
from agentgyms.envs.scienceworld.own.objects.plumbing import Bathtub, Sink, Toilet
from agentgyms.envs.scienceworld.own.objects.portals import Door
from agentgyms.envs.scienceworld.own.objects.substances import Soap, SodiumChloride, Wood
from agentgyms.envs.scienceworld.own.world import World

_LIGHT_COLORS = ("red", "green", "blue", "yellow", "orange", "violet")
_WIRE_COLORS = ("red", "green", "blue", "yellow", "orange", "black")
_BEES = 5

# Each object takes a number when it is made, and some draw from the generator: so what is made
# first, and what is put where first, is as in the engine.


def make_kitchen(world: World, sewer: EnvObject) -> Room:
    """Return a kitchen."""
    room = Room(world, "kitchen")
    room.add_object(Sink(world, sewer))
    room.add_object(Stove(world))
    fridge = Fridge(world)
    room.add_object(fridge)
    room.add_object(Freezer(world))
    room.add_object(Oven(world))
    _add_kitchen_furniture(room)
    cup = WoodCup(world)
    cup.add_object(OrangeJuice(world))
    fridge.add_object(cup)
    room.add_object(Thermometer(world))
    room.add_object(Picture.mk_random(world))
    table = WoodTable(world)
    room.add_object(table)
    table.add_object(GlassCup(world))
    room.add_object(Chair(world))
    room.add_object(Lighter(world))
    jar = GlassJar(world)
    jar.add_object(SodiumChloride(world))
    room.add_object(jar)
    room.add_object(Soap(world))
    room.add_object(StopWatch(world))
    return room


def _add_kitchen_furniture(room: Room) -> None:
    world = room.world
    cupboard = Cupboard(world)
    room.add_object(cupboard)
    for dish in (MetalPot, TinCup, CeramicCup):
        cupboard.add_object(dish(world))
    counter = Counter(world)
    room.add_object(counter)
    bowl = WoodBowl(world)
    counter.add_object(bowl)
    for food in (Apple, Banana, Orange, Potato):
        bowl.add_object(food(world))


def make_living_room(world: World) -> Room:
    """Return a living room."""
    room = Room(world, "living room")
    room.add_object(Couch(world))
    room.add_object(Chair(world))
    room.add_object(make_random_table(world))
    _decorate(room)
    return room


def make_bedroom(world: World) -> Room:
    """Return a bedroom."""
    room = Room(world, "bedroom")
    room.add_object(Bed(world))
    room.add_object(WoodTable(world))
    room.add_object(Closet(world))
    _decorate(room)
    return room


def _decorate(room: Room) -> None:
    room.add_object(Picture.mk_random(room.world))
    if room.world.random.next_boolean():
        room.add_object(BookShelf.mk_random(room.world))


def make_bathroom(world: World, sewer: EnvObject) -> Room:
    """Return a bathroom."""
    room = Room(world, "bathroom")
    room.add_object(Sink(world, sewer))
    room.add_object(Toilet(world, sewer))
    room.add_object(Bathtub(world, sewer))
    room.add_object(GlassCup(world))
    room.add_object(Picture.mk_random(world))
    return room


def make_workshop(world: World) -> Room:
    """Return a workshop."""
    room = Room(world, "workshop")
    table = WoodTable(world)
    room.add_object(table)
    for color in world.random.shuffle(_LIGHT_COLORS)[:3]:
        table.add_object(LightBulb(world, color))
    for color in world.random.shuffle(_WIRE_COLORS)[:3]:
        wire = Wire(world)
        wire.name = f"{color} wire"
        table.add_object(wire)
    table.add_object(Switch(world))
    table.add_object(Battery(world))
    room.add_object(UltraColdFreezer(world))
    return room


def make_greenhouse(world: World, sewer: EnvObject) -> Room:
    """Return a greenhouse."""
    room = Room(world, "greenhouse")
    room.add_object(Jug(world))
    hive = BeeHive(world)
    for number in range(_BEES):
        bee = Bee(world)
        bee.name = f"bee {number}"
        hive.add_object(bee)
    room.add_object(hive)
    room.add_object(Sink(world, sewer))
    return room


def make_art_studio(world: World) -> Room:
    """Return an art studio."""
    room = Room(world, "art studio")
    table = WoodTable(world)
    room.add_object(table)
    mixers: list[EnvObject] = [GlassCup(world), WoodBowl(world), Jug(world)]
    table.add_object(world.random.shuffle(mixers)[0])
    _add_paints(room)
    cupboard = Cupboard(world)
    room.add_object(cupboard)
    _add_paints(cupboard)
    cupboard.name = "large cupboard"
    return room


def _add_paints(place: EnvObject) -> None:
    """Add three cups of paint; the paints are made before the cups."""
    world = place.world
    for paint in [RedPaint(world), BluePaint(world), YellowPaint(world)]:
        cup = WoodCup(world)
        cup.add_object(paint)
        place.add_object(cup)


def make_hallway(world: World) -> Room:
    """Return a hallway."""
    room = Room(world, "hallway")
    room.add_object(Picture.mk_random(world))
    return room


def make_outside(world: World) -> Outside:
    """Return the outside."""
    outside = Outside(world)
    for thing in (FirePit, Wood, Axe, Fountain):
        outside.add_object(thing(world))
    return outside


def make_foundry(world: World, sewer: EnvObject) -> Room:
    """Return a foundry."""
    room = Room(world, "foundry")
    room.add_object(BlastFurnace(world))
    room.add_object(Sink(world, sewer))
    room.add_object(SteelTable(world))
    return room


def make_random_table(world: World) -> EnvObject:
    """Return a table of wood, one of steel, or a desk."""
    kinds: tuple[type[WoodTable] | type[SteelTable] | type[Desk], ...]
    kinds = (WoodTable, SteelTable, Desk)
    return kinds[world.random.next_int(3)](world)


def make_door(location1: Location, location2: Location) -> None:
    """Add a closed door between two places."""
    door = Door(location1.world, False, location1, location2)
    location1.add_portal(door)
    location2.add_portal(door)
