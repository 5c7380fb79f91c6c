"""The solutions of powering a part, and of testing whether a substance conducts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgyms.envs.scienceworld.own.gold.path_finder import PathFinder
from agentgyms.envs.scienceworld.own.gold.solver import Solver, holder_of, is_solid
from agentgyms.envs.scienceworld.own.objects.circuits.parts import Wire

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.gold.running import Runner
    from agentgyms.envs.scienceworld.own.objects.base import EnvObject
    from agentgyms.envs.scienceworld.own.tasks.parametric import Notes

_ROOM = "workshop"


def power(given: Notes, kind: str, runner: Runner) -> bool:
    """Power a part with a battery, or a source of a kind; say whether there are wires."""
    solver = _Electrician(runner)
    solver.go(_ROOM)
    solver.run("look around")
    part = PathFinder.all_env_object(given.text("componentToPower"), solver.here())[0]
    source = None
    if kind:
        source = PathFinder.all_env_object(given.text(f"{kind}Source"), solver.here())[0]
    wires = solver.drawn(solver.in_reach(Wire))
    if len(wires) < 2:
        return False
    solver.run(f"focus on {solver.known(part)}")
    if source is not None:
        if kind == "renewable":
            solver.carry_outside(part, source, wires[0], wires[1])
        solver.run("look around")
    name = "battery" if source is None else source.name
    solver.connect_poles(name, wires[0], wires[1])
    anode, cathode = solver.ends(part)
    solver.run(f"connect {solver.known(wires[0])} terminal 2 to {cathode}")
    solver.run(f"connect {solver.known(wires[1])} terminal 2 to {anode}")
    if kind == "nonrenewable":
        solver.run(f"activate {name}")
    solver.run("wait1", "wait1", "look around")
    return True


def test_conductivity(given: Notes, known: bool, runner: Runner) -> bool:
    """Close a circuit with a substance, and put it into a box; say whether all was found."""
    solver = _Electrician(runner)
    found = solver.fetch(given.text("substance"))
    if found is None:
        return False
    substance, carried = found
    solver.run(f"focus on {solver.known(substance)}")
    solver.go(_ROOM)
    name = PathFinder.obj_unique_referent(carried, runner.agent)
    if name is None:
        return False
    solver.run(f"drop {name}", "look around")
    part = solver.find(given.text("partToPower"))[0]
    wires = solver.drawn(solver.in_reach(Wire))
    if len(wires) < 3:
        return False
    solver.connect_poles("battery", wires[0], wires[1])
    anode, cathode = solver.ends(part)
    solver.run(f"connect {solver.known(wires[0])} terminal 2 to {cathode}")
    solver.run(f"connect {solver.known(wires[2])} terminal 2 to {anode}")
    solver.insert(substance, wires[1], wires[2], by_name=not (known and is_solid(substance)))
    solver.run("wait1", "wait1", "look around")
    conducts = part.prop_device is not None and part.prop_device.is_activated
    boxes = [solver.find(given.text(key))[0] for key in ("conductive", "nonconductive")]
    solver.put(substance, boxes[0] if conducts else boxes[1], known)
    solver.run("wait1")
    return True


class _Electrician(Solver):
    def carry_outside(self, *objs: EnvObject) -> None:
        for obj in objs:
            self.pick_up(obj)
        self.go("outside")
        for obj in objs:
            self.run(f"drop {self.known(obj)}")

    def connect_poles(self, source: str, first: EnvObject, second: EnvObject) -> None:
        self.run(f"connect {source} anode to {self.known(first)} terminal 1")
        self.run(f"connect {source} cathode to {self.known(second)} terminal 1")

    def fetch(self, name: str) -> tuple[EnvObject, EnvObject] | None:
        """Pick up a substance, wherever it is; return it, and what it is carried in."""
        way = self.walk()
        if name == "water":
            filled = self.fetch_water()
            if filled is None:
                return None
            cup, water = filled
            self.pick_up(cup)
            return water, cup
        for commands in way:
            if self.find(name):
                break
            self.run(*commands)
        found = self.find(name)
        if not found:
            return None
        carried = found[0] if is_solid(found[0]) else holder_of(found[0])
        self.pick_up(found[0])  # a liquid, too, though it cannot be
        return found[0], carried

    def insert(
        self, substance: EnvObject, first: EnvObject, second: EnvObject, *, by_name: bool
    ) -> None:
        for at, wire in ((1, first), (2, second)):
            name = substance.name if by_name else self.known(substance)
            self.run(f"connect {name} terminal {at} to {self.known(wire)} terminal {3 - at}")

    def put(self, substance: EnvObject, box: EnvObject, known: bool) -> None:
        """Move a substance into a box, with its container if it is a known liquid."""
        if not known:
            self.run(f"move {substance.name} to {self.known(box)}")
            return
        self.move(substance if is_solid(substance) else holder_of(substance), box)
