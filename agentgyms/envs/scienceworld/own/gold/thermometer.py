"""The solutions of measuring a temperature, and a melting point."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgyms.envs.scienceworld.own.gold.path_finder import PathFinder
from agentgyms.envs.scienceworld.own.gold.solver import Solver, holder_of
from agentgyms.envs.scienceworld.own.objects.containers import MetalPot
from agentgyms.envs.scienceworld.own.objects.heating import Stove
from agentgyms.envs.scienceworld.own.tasks.modifiers import material_of

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.gold.running import Runner
    from agentgyms.envs.scienceworld.own.objects.base import EnvObject
    from agentgyms.envs.scienceworld.own.tasks.parametric import Notes

_OPENINGS = 21
_HEATS = 40
_STOVE_LIMIT = 200.0


def measure_temperature(given: Notes, runner: Runner) -> bool:
    """Measure a thing, and move it into a box; say whether it was found."""
    solver = _Measurer(runner)
    tool = solver.fetch_tool(given.text("instrumentName"))
    if tool is None:
        return False
    solver.go(given.text("location"))
    solver.run("look around")
    found = solver.find(given.text("objectName"))
    if not found:
        return False
    thing = found[0]
    solver.run(f"pick up {thing.name}")
    solver.run(f"focus on {thing.name} in inventory")
    solver.go(given.text("locationAnswerBox"))
    solver.run("look around")
    solver.run(f"use {tool.name} in inventory on {thing.name} in inventory")
    above = material_of(thing).temperature_c > given.number("temperaturePoint")
    box = given.text("boxAbove" if above else "boxBelow")
    solver.run(f"move {thing.name} in inventory to {box}", "wait1")
    return True


def measure_melting_point(given: Notes, known: bool, runner: Runner) -> bool:
    """Melt or freeze a substance, and focus on a box; say whether it was found."""
    solver = _Measurer(runner)
    tool = solver.fetch_tool(given.text("instrumentName"))
    if tool is None:
        return False
    solver.go(given.text("location"))
    solver.run("look around")
    name = given.text("objectName")
    if name == "water":
        substance = PathFinder.water_in_container(runner)[2]
        if substance is None:
            raise LookupError("None.get")
    else:
        found = solver.open_until_found(name, _OPENINGS)
        if not found:
            return False
        substance = found[0]
    if material_of(substance).state_of_matter == "solid":
        solver.put_on_heater(substance, known, given.number("meltingPoint"))
        melted = solver.measure_while(substance, tool, "solid", _HEATS)
    else:
        solver.put_into_freezer(substance)
        melted = solver.measure_while(substance, tool, "liquid", 30 if known else 40)
    solver.go(given.text("locationAnswerBox"))
    above = melted > given.number("temperaturePoint")
    solver.run(f"focus on {given.text('boxAbove' if above else 'boxBelow')}", "wait1")
    return True


class _Measurer(Solver):
    def fetch_tool(self, name: str) -> EnvObject | None:
        """Pick the thermometer up and focus on it; return it, or None if there is none."""
        self.go("kitchen")
        self.run("look around")
        tools = self.find(name)
        if not tools:
            return None
        self.run(f"pick up {tools[0].name}")
        self.run(f"focus on {tools[0].name} in inventory")
        return tools[0]

    def put_on_heater(self, substance: EnvObject, known: bool, melting_point: float) -> None:
        self.run(f"focus on {self.known(substance)}", "open cupboard")
        pot = self.in_reach(MetalPot)[0]
        self.move(substance, pot)
        if known:
            if melting_point < _STOVE_LIMIT:
                self._put_on_stove(pot)
            else:
                self._put_into_furnace(pot)
            return
        self.pick_up(pot)
        stove = self.here().contained_objects_of_type(Stove)[0]
        self._put_on_stove(pot)
        assert stove.prop_device is not None
        if stove.prop_device.is_broken:
            self._put_into_furnace(pot)

    def _put_on_stove(self, pot: EnvObject) -> None:
        self.run(f"move {self.known(pot)} to stove", "activate stove")

    def _put_into_furnace(self, pot: EnvObject) -> None:
        self.pick_up(pot)
        self.go("foundry")
        self.run("open blast furnace")
        self.run(f"move {self.known(pot)} to blast furnace", "activate blast furnace")

    def put_into_freezer(self, substance: EnvObject) -> None:
        holder = holder_of(substance)
        self.pick_up(holder)
        self.run(f"focus on {self.known(substance)}", "open freezer")
        self.run(f"move {self.known(holder)} to freezer")

    def measure_while(
        self, substance: EnvObject, tool: EnvObject, state: str, attempts: int
    ) -> float:
        """Measure until the state changes; return the last temperature."""
        temperature = 0.0
        for _ in range(attempts):
            self.run(f"examine {self.known(substance)}")
            seen = material_of(substance).state_of_matter
            temperature = material_of(substance).temperature_c
            self.run(f"use {tool.name} in inventory on {self.known(substance)}")
            if seen != state:
                break
        return temperature
