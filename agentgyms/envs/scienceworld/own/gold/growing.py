"""The solutions of growing a plant and a fruit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgyms.envs.scienceworld.own.gold.garden import GREENHOUSE, Garden
from agentgyms.envs.scienceworld.own.gold.running import Runner
from agentgyms.envs.scienceworld.own.life.fruits import Fruit
from agentgyms.envs.scienceworld.own.life.living import LivingThing

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.tasks.parametric import Notes

_PLANT_CYCLES = 5
_FRUIT_CYCLES = 15
_FRUIT_PLANTS = 3


def grow_plant(notes: Notes, runner: Runner) -> bool:
    """Grow a plant and focus on it; say whether that worked."""
    garden, seed_type = Garden(runner), notes.text("seedType")
    if garden.fetch_jar(notes.text("location")) is None:
        return False
    garden.go(GREENHOUSE)
    garden.sort_pots(by_number=False)
    if not garden.ready:
        garden.fill_pot()
    garden.plant(seed_type, 1)
    pot = garden.planted[0]
    if not pot.contained_accessible_objects_of_type(LivingThing):
        raise IndexError("the seed is not in the pot")
    garden.run(f"focus on {seed_type} seed in {pot.name}")
    for _ in range(_PLANT_CYCLES):
        garden.water()
        garden.wait(5)
        garden.run("look around")
    garden.wait(1)
    return True


def grow_fruit(notes: Notes, runner: Runner) -> bool:
    """Grow plants that bees cross, and focus on a fruit; say whether that worked."""
    garden, seed_type = Garden(runner), notes.text("seedType")
    if garden.fetch_jar(notes.text("location")) is None:
        return False
    garden.go(GREENHOUSE)
    garden.sort_pots(by_number=True)
    if not garden.prepare_pots(_FRUIT_PLANTS):
        return False
    garden.plant(seed_type, _FRUIT_PLANTS)
    released = done = False
    for _ in range(_FRUIT_CYCLES):
        garden.water()
        if not released and garden.blooms():
            garden.release_bees()
            released = True
        done = _focus_on_fruit(garden, seed_type)
        garden.wait(5)
        garden.run("look around")
        if done:
            break
    garden.wait(1)
    return True


def _focus_on_fruit(garden: Garden, seed_type: str) -> bool:
    for fruit in garden.drawn(garden.in_reach(Fruit)):
        if fruit.name.lower() == seed_type.lower():
            garden.run(f"focus on {garden.known(fruit)}")
            if garden.runner.action_history()[-1] != "0":
                garden.run("0")
            return True
    return False
