"""Our ScienceWorld engine: simplifications, and things that work by themselves."""

import pytest

from agentgyms.envs.scienceworld.own.house.building import mk_kitchen_environment
from agentgyms.envs.scienceworld.own.objects.containers import GlassCup, SelfWateringFlowerPot
from agentgyms.envs.scienceworld.own.objects.documents import Book, Recipe
from agentgyms.envs.scienceworld.own.objects.furniture import Drawer
from agentgyms.envs.scienceworld.own.objects.planes import InclinedPlane
from agentgyms.envs.scienceworld.own.objects.plumbing import Sink, Toilet
from agentgyms.envs.scienceworld.own.objects.portals import Portal
from agentgyms.envs.scienceworld.own.objects.substances import Water, WoodBlock
from agentgyms.envs.scienceworld.own.objects.texts import whole_number_text
from agentgyms.envs.scienceworld.own.processes.passing import pass_time
from agentgyms.envs.scienceworld.own.simplify import SimplifierProcessor
from agentgyms.envs.scienceworld.own.world import World


def new_world():
    return World(pass_time=pass_time)


def after(obj, ticks):
    for _ in range(ticks):
        obj.clear_tick_processed_recursive()
        obj.tick()
    return obj


@pytest.mark.parametrize(
    ("text", "labels", "unknown"),
    [
        ("", [], None),
        (",", [], None),
        (" OPENDOORS , openContainers,openDoors,,", ["openDoors", "openContainers"], None),
        ("openDoors,nonsense,teleportAction", ["openDoors"], "nonsense"),
        (" ", [], ""),
    ],
)
def test_simplifications_are_read_as_the_engine_does(text, labels, unknown):
    simplifier = SimplifierProcessor()
    fine, told = simplifier.parse_simplification_str(text)
    assert simplifier.simplifications == labels
    error = "" if unknown is None else f"ERROR: Unknown simplification label: {unknown}"
    assert (fine, told) == (unknown is None, error)


def test_simplifications_open_doors_and_containers():
    universe, _ = mk_kitchen_environment(new_world(), 3)
    simplifier = SimplifierProcessor()
    simplifier.parse_simplification_str("openDoors,openContainers")
    simplifier.run_simplifications_initialization(universe)
    rooms = universe.contained_objects()
    portals = [portal for room in rooms for portal in room.portals()]
    assert portals
    assert all(isinstance(p, Portal) and p.is_currently_passable() for p in portals)
    inside = universe.contained_objects_recursive()
    drawers = [obj for obj in inside if isinstance(obj, Drawer)]
    assert drawers
    assert all(drawer.prop_container.is_open for drawer in drawers)


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.5, "1"), (1.5, "2"), (2.5, "3"), (-0.3, "-0"), (-0.5, "-1"), (12.49999999999999, "12")],
)
def test_numbers_are_rounded_as_java_does(number, text):
    assert whole_number_text(number) == text


def test_solids_slide_by_their_surface_and_liquids_run_down():
    world = new_world()
    plane, block, water = InclinedPlane(world), WoodBlock(world), Water(world)
    assert plane.description() == "an inclined plane"
    plane.add_object(block)
    plane.add_object(water)
    water.prop_material.temperature_c = 20.0
    water.prop_material.state_of_matter = "liquid"
    assert plane.description().endswith("top of the plane, a water at the top of the plane")
    after(plane, 3)
    assert 0 < plane.object_position_on_plane(block) < 1
    assert plane.object_position_on_plane(water) == 0
    after(plane, 60)
    assert " a wood block at the bottom of the plane" in plane.description()


def test_taps_fill_what_is_open_and_drains_empty_it():
    world = new_world()
    cup, below = GlassCup(world), GlassCup(world)
    sink = Sink(world, below)
    sink.add_object(cup)
    sink.prop_device.is_activated = True
    after(sink, 1)
    assert cup.contained_objects_of_type(Water)
    assert below.contained_objects_of_type(Water)
    assert not sink.contained_objects_of_type(Water)
    assert "glass cup (containing a substance called water)" in sink.description()


def test_a_flush_ends():
    toilet = Toilet(new_world(), GlassCup(new_world()))
    toilet.prop_device.is_activated = True
    after(toilet, 1)
    assert toilet.description().startswith("a toilet, which is flushing. ")
    after(toilet, 4)
    assert toilet.description().startswith("a toilet. ")
    assert toilet.drain.open_closed_str() == "closed"


def test_things_are_named_by_their_contents():
    pot = after(SelfWateringFlowerPot(new_world()), 1)
    assert {"pot", "flower pot containing water"} <= set(pot.referents())


def test_documents_are_read():
    world = new_world()
    recipe = Recipe.mk_recipe(world, "paint", ["salt", "water"])
    read = recipe.read_document()
    assert read == "The recipe reads:\nTo make paint, you need to mix salt, water."
    books = {Book.mk_random(world).title for _ in range(60)}
    assert len(books) == 6
