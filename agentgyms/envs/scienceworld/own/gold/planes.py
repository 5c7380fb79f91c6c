"""The solutions of comparing inclined planes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgyms.envs.scienceworld.own.gold.solver import Solver
from agentgyms.envs.scienceworld.own.objects.devices import StopWatch
from agentgyms.envs.scienceworld.own.objects.planes import InclinedPlane

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.gold.running import Runner
    from agentgyms.envs.scienceworld.own.objects.base import EnvObject
    from agentgyms.envs.scienceworld.own.tasks.parametric import Notes


def compare_planes(given: Notes, runner: Runner) -> bool:
    """Measure how long a block slides on each plane, and focus on one; say whether it could."""
    solver = _Measurer(runner)
    solver.go(given.text("planeLocation"))
    solver.run("look around")
    watches = solver.find(given.text("timeDeviceName"))
    if not watches:
        return False
    solver.pick_up(watches[0])
    blocks = solver.find(given.text("blockName"))
    if not blocks:
        return False
    first, second, *_ = sorted(solver.in_reach(InclinedPlane), key=lambda plane: plane.name)
    times = []
    for plane in (first, second):
        time = solver.slide(blocks[0], watches[0], plane)
        if time is None:
            return False
        times.append(time)
    mode = given.text("mode")
    # A block takes long on much friction, and on a plane that is not steep.
    longest = times[0] > times[1] if mode in ("most", "least") else not times[0] < times[1]
    chosen = first if longest == (mode in ("most", "shallowest")) else second
    solver.run(f"focus on {solver.known(chosen)}", "wait1")
    return True


class _Measurer(Solver):
    def slide(self, block: EnvObject, watch: EnvObject, plane: EnvObject) -> int | None:
        """Return how long a block slides, or None if it is not on the plane."""
        assert isinstance(watch, StopWatch)
        assert isinstance(plane, InclinedPlane)
        self.move(block, plane)
        self.run(f"activate {watch.name} in inventory")
        position: float | None = None
        while position != 0.0:
            self.run(f"look at {self.known(plane)}")
            position = plane.object_position_on_plane(block)
            if position is None:
                return None
        self.run(f"look at {self.known(plane)}")
        self.run(f"deactivate {watch.name} in inventory")
        self.run(f"examine {watch.name} in inventory")
        return watch.stopwatch_user_time
