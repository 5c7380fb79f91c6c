"""The solution of telling a dominant trait from a recessive one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgyms.envs.scienceworld.own.gold.garden import GREENHOUSE, Garden, in_stages
from agentgyms.envs.scienceworld.own.gold.running import Runner
from agentgyms.envs.scienceworld.own.life.crossed import CrossedPlant
from agentgyms.envs.scienceworld.own.life.plant_stages import (
    PLANT_STAGE_ADULT_PLANT,
    PLANT_STAGE_REPRODUCING,
    PLANT_STAGE_SEED,
)

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.objects.base import EnvObject
    from agentgyms.envs.scienceworld.own.tasks.parametric import Notes

_POTS = 6
_PARENTS = 2
_CHILDREN = 4
_SEEDS = 6
_CYCLES = 10


def find_dominance(notes: Notes, plant: type[CrossedPlant], runner: Runner) -> bool:
    """Cross two plants, grow their children, and focus on a box; say whether that worked."""
    garden, seed_type = Garden(runner), notes.text("seedType")
    jar = garden.fetch_jar(GREENHOUSE)
    if jar is None:
        return False
    garden.sort_pots(by_number=False)
    if not garden.prepare_pots(_POTS):
        garden.run("ERROR: Ending early -- max attempts exceeded (5)")
        return False
    garden.plant(seed_type, _PARENTS)
    _harvest(garden, plant, jar)
    garden.run("look at seed jar")
    garden.planted.clear()
    garden.plant(seed_type, _CHILDREN)
    _focus(garden, notes, _grown_children(garden, plant))
    garden.wait(1)
    return True


def _harvest(garden: Garden, plant: type[CrossedPlant], jar: EnvObject) -> None:
    """Let bees cross the parents, and move the seeds into the jar once there are enough."""
    released = False
    for _ in range(_CYCLES):
        garden.water()
        if not released and garden.blooms():
            garden.release_bees()
            released = True
        seeds = in_stages(garden.drawn(garden.in_reach(plant)), PLANT_STAGE_SEED)
        if len(seeds) >= _SEEDS:
            for seed in seeds:
                garden.run(f"move {garden.known(seed)} to {garden.known(jar)}")
            garden.run("look around")
            return
        garden.wait(5)
        garden.run("look around")


def _grown_children(garden: Garden, plant: type[CrossedPlant]) -> list[EnvObject]:
    """Water until there are enough adult plants, the parents among them, and return those."""
    for _ in range(_CYCLES):
        garden.water()
        found = garden.drawn(garden.in_reach(plant))
        adults = in_stages(found, PLANT_STAGE_ADULT_PLANT, PLANT_STAGE_REPRODUCING)
        if len(adults) >= _CHILDREN:
            garden.run("look around")
            return adults
        garden.wait(5)
        garden.run("look around")
    return []


def _focus(garden: Garden, notes: Notes, adults: list[EnvObject]) -> None:
    trait, value = notes.text("traitName"), notes.text("traitValue")
    shown = [plant.prop_chromosome_pairs.phenotype_value(trait) for plant in adults]
    often = shown.count(value) > len(adults) // 2
    garden.run(f"focus on {notes.text('answerBoxDom' if often else 'answerBoxRec')}")
