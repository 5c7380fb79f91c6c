"""The solutions of the tasks about stages of life and life spans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentgyms.envs.scienceworld.own.gold.garden import Garden, stage_of
from agentgyms.envs.scienceworld.own.gold.path_finder import PathFinder
from agentgyms.envs.scienceworld.own.gold.running import Runner
from agentgyms.envs.scienceworld.own.life.living import LivingThing
from agentgyms.envs.scienceworld.own.life.plants import Plant

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.objects.base import EnvObject, Objects
    from agentgyms.envs.scienceworld.own.tasks.parametric import Notes

_MAX_WAIT = 20


def identify_life_stages(notes: Notes, name_key: str, runner: Runner) -> bool:
    """Focus on all stages of a life; say whether each was seen in time."""
    garden, kind = Garden(runner), notes.text(name_key)
    garden.go(notes.text("location"))
    garden.run("look around")
    for stage in notes.stages():
        if not _focus_on_stage(garden, stage, kind):
            return False
    garden.wait(1)
    return True


def _focus_on_stage(garden: Garden, stage: str, kind: str) -> bool:
    living = garden.here().contained_accessible_objects_of_type(
        LivingThing, include_hidden=False, include_portals=False
    )
    found = _wait_for_stage(garden, living, stage, kind)
    if found is None:
        return False
    container = found.container()
    assert container is not None
    plant = isinstance(found, Plant)
    name = f"{found.name} in the {stage} stage" if plant else f"{stage} {found.name}"
    garden.run(f"focus on {name} in {container.name}")
    garden.run("look around")
    return True


def _wait_for_stage(garden: Garden, living: Objects, stage: str, kind: str) -> EnvObject | None:
    for _ in range(_MAX_WAIT):
        for obj in living:
            life = obj.prop_life
            if life is not None and life.lifeform_type == kind and stage_of(obj) == stage:
                return obj
        garden.wait(1)
    return None


def find_life_spans(notes: Notes, wanted: Sequence[str], runner: Runner) -> bool:
    """Focus on the animals whose notes have these keys, one after the other."""
    garden = Garden(runner)
    garden.go(notes.text("location"))
    for key in wanted:
        animal = PathFinder.env_object(notes.text(key), garden.here())
        if animal is None:
            raise LookupError("None.get")
        garden.run(f"focus on {garden.known(animal)}")
    garden.wait(1)
    return True
