"""The solutions of mixing a substance after a recipe, and of mixing paint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgyms.envs.scienceworld.own.gold.path_finder import PathFinder
from agentgyms.envs.scienceworld.own.gold.solver import Solver, holder_of, is_solid
from agentgyms.envs.scienceworld.own.objects.containers import Container, Cup
from agentgyms.envs.scienceworld.own.objects.paint import Paint

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.gold.running import Runner
    from agentgyms.envs.scienceworld.own.objects.base import EnvObject
    from agentgyms.envs.scienceworld.own.tasks.parametric import Notes

_OPENINGS, _PAINT_OPENINGS = 6, 11
_PAINTS = 3


def mix(given: Notes, runner: Runner) -> bool:
    """Read the recipe, and mix what it asks for; say whether all was found."""
    solver = _Mixer(runner)
    solver.go("kitchen")
    solver.run("open cupboard")
    cup = next(obj for obj in solver.in_reach(Cup) if not obj.contained_objects(False))
    solver.pick_up(cup)
    solver.go(given.text("location"))
    solver.run("look around")
    recipes = solver.find("recipe")
    if not recipes:
        return False
    solver.run(f"pick up {recipes[0].name}", "read recipe in inventory", "look around")
    if not all(solver.add(name, cup) for name in given.texts("inputChemicals")):
        return False
    solver.run(f"examine {solver.known(cup)}")
    solver.run(f"mix {solver.known(cup)}")
    results = PathFinder.all_accessible_env_object(given.text("result"), cup)
    if not results:
        return False
    solver.run(f"focus on {solver.known(results[0])}", "wait1")
    return True


class _Mixer(Solver):
    def add(self, name: str, cup: EnvObject) -> bool:
        """Put an ingredient into the cup; say whether it was found."""
        if name == "water":
            filled = self.fetch_water(cup)
            if filled is None:
                return False
            found = filled[1]
        else:
            all_found = self.open_until_found(name, _OPENINGS) or self.walk_until_found(name)
            if not all_found:
                return False
            found = all_found[0]
            if is_solid(found):
                self.pick_up(found)
                self.move(found, cup)
            else:
                self.pick_up(holder_of(found))
        if PathFinder.obj_unique_referent(found, self.here()) is None:
            return False
        material = found.prop_material
        if material is not None and material.state_of_matter == "liquid":
            self.run(f"pour {self.known(holder_of(found))} into {self.known(cup)}")
        return True


def mix_paint(given: Notes, tertiary: bool, runner: Runner) -> bool:
    """Mix paint of the secondary color, and with it of the tertiary one; say whether it worked."""
    solver = _Painter(runner)
    if not solver.go_to_paints():
        return False
    solver.run("look around")
    bowl = solver.empty_container()
    if bowl is None:
        return False
    for name in given.texts("inputChemicalsSecondary"):
        solver.pour(solver.find(name)[0], bowl)
    if not solver.mix(given.text("secondaryColor"), bowl):
        return False
    if not tertiary:
        return True
    if not solver.add_all(given.texts("inputChemicalsTertiary"), bowl):
        return False
    return solver.mix(given.text("tertiaryColor"), bowl)


class _Painter(Solver):
    def go_to_paints(self) -> bool:
        """Go through all places until there are three paints; say whether there is one then."""
        for commands in self.walk():
            if len(self.in_reach(Paint)) >= _PAINTS:
                return True
            self.run(*commands)
        return bool(self.in_reach(Paint))

    def empty_container(self) -> EnvObject | None:
        for obj in self.in_reach(Container):
            opens = obj.prop_container
            if not obj.contained_objects(False) and opens is not None and opens.is_open:
                return obj
        return None

    def pour(self, paint: EnvObject, bowl: EnvObject) -> None:
        self.run(f"pour {self.known(holder_of(paint))} in {self.known(bowl)}")

    def mix(self, name: str, bowl: EnvObject) -> bool:
        """Mix the bowl, and focus on the paint of a name; say whether it is there."""
        self.run(f"mix {self.known(bowl)}", "look around")
        found = self.find(name)
        if not found:
            return False
        self.run(f"focus on {self.known(found[0])}", "wait1")
        return True

    def add_all(self, names: tuple[str, ...], bowl: EnvObject) -> bool:
        """Pour paints into the bowl, if need be in the other room; tell whether they were found.

        The engine goes on until it has found the last paint, and pours the earlier ones again.
        """
        moved = False
        while True:
            for name in names:
                found = self._open_until_found(name)
                if found:
                    self.pour(found[0], bowl)
                elif moved:
                    return False
                else:
                    moved = True
                    self._carry(bowl)
            if found:
                return True

    def _open_until_found(self, name: str) -> list[EnvObject]:
        """Open containers here until a paint is in reach; the last is opened without a look."""
        opened = True
        for _ in range(_PAINT_OPENINGS):
            found = self.find(name)
            if found:
                break
            opened = opened and PathFinder.open_random_closed_container(self.here(), self.runner)
        return found

    def _carry(self, bowl: EnvObject) -> None:
        self.pick_up(bowl)
        self.go("workshop" if self.here().name == "art studio" else "art studio")
        self.run(f"drop {bowl.name} in inventory", "look around")
