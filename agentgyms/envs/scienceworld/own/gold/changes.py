"""The solutions of boiling, melting, freezing and changing the state of matter."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from agentgyms.envs.scienceworld.own.gold.path_finder import PathFinder
from agentgyms.envs.scienceworld.own.gold.solver import Solver, holder_of
from agentgyms.envs.scienceworld.own.objects.containers import MetalPot
from agentgyms.envs.scienceworld.own.properties import MaterialProperties
from agentgyms.envs.scienceworld.own.tasks.modifiers import material_of

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.gold.running import Runner
    from agentgyms.envs.scienceworld.own.objects.base import EnvObject
    from agentgyms.envs.scienceworld.own.tasks.parametric import Notes

_HEATS, _COOLS = 30, 20  # attempts
_OPENINGS = 21


class _Device(NamedTuple):
    name: str
    room: str
    opened: bool = True


_HEATERS = (_Device("stove", "kitchen", opened=False), _Device("blast furnace", "foundry"))
_COOLERS = (_Device("freezer", "kitchen"), _Device("freezer", "workshop"))


def change_state(given: Notes, mode: str, runner: Runner) -> bool:
    """Change the state of a substance in a pot; say whether it was found."""
    solver = _Changer(runner)
    solver.go("kitchen")
    solver.run("look around")
    thermometers = solver.find("thermometer")
    if not thermometers:
        return False
    solver.run(f"pick up {thermometers[0].name}", "open cupboard")
    pot = solver.in_reach(MetalPot)[0]
    solver.pick_up(pot)
    solver.run("look around")
    substance = solver.fetch(given.text("objectName"), pot)
    if substance is None:
        return False
    if PathFinder.obj_unique_referent(substance, solver.here()) is None:
        solver.run("NODE: CAN'T FIND THE OBJECT")
        return False
    solver.run(f"focus on {solver.known(substance)}")
    if material_of(substance).state_of_matter == "solid":
        solver.move(substance, pot)
    else:
        old = holder_of(substance)
        solver.run(f"pour {solver.known(old)} into {solver.known(pot)}")
    solver.change(substance, pot, mode)
    solver.run("wait1")
    return True


class _Changer(Solver):
    def fetch(self, name: str, pot: EnvObject) -> EnvObject | None:
        if name == "water":
            filled = self.fetch_water(pot)
            return None if filled is None else filled[1]
        found = self.open_until_found(name, _OPENINGS)
        if found:
            return found[0]
        found = self.walk_until_found(name)
        if not found:
            return None
        solid = material_of(found[0]).state_of_matter == "solid"
        self.pick_up(found[0] if solid else holder_of(found[0]))
        self.go("kitchen")
        return found[0]

    def change(self, substance: EnvObject, pot: EnvObject, mode: str) -> None:
        material = material_of(substance)
        state = material.state_of_matter
        if mode == "melt":
            if state != "solid":
                self.cool(substance, pot, "solid")
                self.pick_up(pot)
            self.heat(substance, pot, "liquid")
        elif mode == "boil":
            if state == "gas":
                self.cool(substance, pot, "liquid")
                self.pick_up(pot)
            self.heat(substance, pot, "gas", may_burn=True)
        elif mode == "freeze":
            if state == "solid":
                self.heat(substance, pot, "liquid")
                self.pick_up(pot)
            self.cool(substance, pot, "solid")
        else:
            self._change_any(substance, pot, material)

    def _change_any(
        self, substance: EnvObject, pot: EnvObject, material: MaterialProperties
    ) -> None:
        if material.state_of_matter == "solid":
            self.heat(substance, pot, "liquid")
        elif material.state_of_matter == "gas":
            self.cool(substance, pot, "liquid")
        else:
            self.cool(substance, pot, "solid")
            if material_of(substance).state_of_matter == "liquid":
                self.pick_up(pot)
                self.heat(substance, pot, "gas", may_burn=True)

    def heat(
        self, substance: EnvObject, pot: EnvObject, state: str, *, may_burn: bool = False
    ) -> None:
        for device in _HEATERS:
            self._put(pot, device)
            self.run(f"activate {device.name}")
            if self._heat_on(device, substance, state, may_burn):
                return
            may_burn = False  # the engine forgets that it may as it goes on to the furnace

    def _heat_on(self, device: _Device, substance: EnvObject, state: str, may_burn: bool) -> bool:
        """Tell whether there is nothing more to do, as the substance is gone or as wanted."""
        seen = material_of(substance).state_of_matter
        made = PathFinder.env_object(device.name, self.runner.universe)
        if made is not None and made.prop_device is not None and made.prop_device.is_activated:
            for _ in range(_HEATS):
                if may_burn and material_of(substance).is_combusting:
                    break
                if _is_gone(substance):
                    return True
                self.run(f"examine {self.known(substance)}")
                seen = material_of(substance).state_of_matter
                if _is_gone(substance):
                    return True
                self._measure(substance)
                if seen == state:
                    break
        return seen == state or (may_burn and material_of(substance).is_combusting)

    def cool(self, substance: EnvObject, pot: EnvObject, state: str) -> None:
        for device in _COOLERS:
            self.go("kitchen")
            self._put(pot, device)
            if self._cool_in(substance, state):
                return

    def _cool_in(self, substance: EnvObject, state: str) -> bool:
        """Tell whether there is nothing more to do, as the substance is gone or as wanted."""
        seen = material_of(substance).state_of_matter
        for _ in range(_COOLS):
            if _is_gone(substance):
                return True
            self.run(f"examine {self.known(substance)}")
            seen = material_of(substance).state_of_matter
            if _is_gone(substance):
                return True
            self._measure(substance)
            if _is_gone(substance):
                return True
            self.run("wait")
            if seen == state:
                break
        return seen == state

    def _put(self, pot: EnvObject, device: _Device) -> None:
        self.pick_up(pot)
        self.go(device.room)
        if device.opened:
            self.run(f"open {device.name}")
        self.run(f"move {self.known(pot)} to {device.name}")

    def _measure(self, substance: EnvObject) -> None:
        self.run(f"use thermometer in inventory on {self.known(substance)}")


def _is_gone(substance: EnvObject) -> bool:
    return substance.deleted
