"""The solutions of finding a thing that is alive, or one that is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgyms.envs.scienceworld.own.gold.path_finder import PathFinder
from agentgyms.envs.scienceworld.own.gold.solver import Solver, holder_of
from agentgyms.envs.scienceworld.own.life.animals import Animal
from agentgyms.envs.scienceworld.own.life.plants import Plant
from agentgyms.envs.scienceworld.own.objects.base import EnvObject
from agentgyms.envs.scienceworld.own.objects.containers import FlowerPot
from agentgyms.envs.scienceworld.own.objects.taskitems import AnswerBox

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.gold.running import Runner
    from agentgyms.envs.scienceworld.own.tasks.parametric import Notes


def find_nonliving_thing(given: Notes, runner: Runner) -> bool:
    """Focus on a thing where the box is, and move it; say whether there is one."""
    solver = _Finder(runner)
    solver.go(given.text("location"))
    solver.run("look around")
    found = solver.first(EnvObject, alive=False)
    if found is None:
        return False
    here = solver.here()
    solver.run(PathFinder.action_focus_on_object(found, here))
    box = _existing(PathFinder.env_object(given.text("answerBox"), runner.universe))
    solver.run(PathFinder.action_move_object(found, box, here))
    return True


def find_living_thing(given: Notes, kind: str, runner: Runner) -> bool:
    """Focus on an animal or a plant, and bring it to the box; say whether there is one."""
    solver = _Finder(runner)
    place = {"animal": "outside", "plant": "greenhouse"}.get(kind, "")
    if not place:
        place = runner.universe.world.random.shuffle(["outside", "greenhouse"])[0]
    solver.go(place)
    solver.run("look around")
    kinds: dict[str, type[EnvObject]] = {"animal": Animal, "plant": Plant}
    found = solver.first(kinds.get(kind, EnvObject), alive=True)
    if found is None:
        return False
    in_pot = isinstance(found, Plant) and isinstance(holder_of(found), FlowerPot)
    carried = holder_of(found) if in_pot else found
    here = solver.here()
    solver.run(PathFinder.action_focus_on_object(found, here))
    solver.run(PathFinder.action_pick_up_object(carried, here))
    way = PathFinder.create_action_sequence(runner.universe, place, given.text("location"))
    solver.run(*way)
    there = _existing(PathFinder.env_object(given.text("location"), runner.universe))
    box = _existing(PathFinder.env_object(given.text("answerBox"), there))
    solver.run(PathFinder.action_move_object_from_inventory(carried, box, there))
    return True


class _Finder(Solver):
    def first(self, kind: type[EnvObject], *, alive: bool) -> EnvObject | None:
        reachable = self.here().contained_objects_recursive_accessible(include_hidden=False)
        for obj in self.runner.universe.world.random.shuffle(reachable):
            if obj.prop_moveable is None or not obj.prop_moveable.is_movable:
                continue
            fits = obj.prop_life is not None if alive else _is_dead_matter(obj)
            if fits and isinstance(obj, kind):
                return obj
        return None


def _is_dead_matter(obj: EnvObject) -> bool:
    if isinstance(obj, AnswerBox) or obj.prop_life is not None:
        return False
    return obj.prop_material is not None and obj.prop_material.state_of_matter == "solid"


def _existing(obj: EnvObject | None) -> EnvObject:
    if obj is None:
        raise LookupError("None.get")
    return obj
