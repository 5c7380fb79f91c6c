"""The list of all tasks, and the making of one variation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentgyms.envs.scienceworld.own.gold.running import Runner
from agentgyms.envs.scienceworld.own.gold.solutions import solve
from agentgyms.envs.scienceworld.own.tasks.changes import TaskChangeOfState
from agentgyms.envs.scienceworld.own.tasks.chemistry import TaskChemistryMix
from agentgyms.envs.scienceworld.own.tasks.circuits import (
    TaskElectricalConductivity,
    TaskElectricalConductivity2,
    TaskElectricCircuit,
)
from agentgyms.envs.scienceworld.own.tasks.finding import TaskFindLivingNonLiving
from agentgyms.envs.scienceworld.own.tasks.growing import TaskGrowPlant
from agentgyms.envs.scienceworld.own.tasks.heredity import (
    TaskMendelianGenetics1,
    TaskMendelianGenetics2,
)
from agentgyms.envs.scienceworld.own.tasks.lives import (
    TaskIdentifyLifeStages1,
    TaskIdentifyLifeStages2,
    TaskLifeSpan,
)
from agentgyms.envs.scienceworld.own.tasks.melting import (
    TaskUseInstrumentThermometer2,
    TaskUseInstrumentThermometer3,
)
from agentgyms.envs.scienceworld.own.tasks.modifiers import TaskModifier, notes
from agentgyms.envs.scienceworld.own.tasks.painting import TaskChemistryMixPaint
from agentgyms.envs.scienceworld.own.tasks.parametric import (
    Notes,
    Task,
    TaskParametric,
    skip_draws,
)
from agentgyms.envs.scienceworld.own.tasks.planes import (
    TaskInclinedPlane1,
    TaskInclinedPlane2,
    TaskInclinedPlane3,
)
from agentgyms.envs.scienceworld.own.tasks.thermometer import TaskUseInstrumentThermometer

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.objects.agent import Agent
    from agentgyms.envs.scienceworld.own.objects.base import EnvObject
    from agentgyms.envs.scienceworld.own.world import World

_KINDS: Final[tuple[tuple[type[TaskParametric], tuple[str, ...]], ...]] = (
    (TaskChangeOfState, ("change-the-state-of-matter-of", "melt", "boil", "freeze")),
    (
        TaskElectricCircuit,
        ("power-component", "power-component-renewable-vs-nonrenewable-energy"),
    ),
    (TaskElectricalConductivity, ("test-conductivity",)),
    (TaskElectricalConductivity2, ("test-conductivity-of-unknown-substances",)),
    (
        TaskFindLivingNonLiving,
        ("find-living-thing", "find-non-living-thing", "find-plant", "find-animal"),
    ),
    (TaskGrowPlant, ("grow-plant", "grow-fruit")),
    (TaskChemistryMix, ("chemistry-mix",)),
    (
        TaskChemistryMixPaint,
        ("chemistry-mix-paint-secondary-color", "chemistry-mix-paint-tertiary-color"),
    ),
    (
        TaskLifeSpan,
        (
            "lifespan-longest-lived",
            "lifespan-shortest-lived",
            "lifespan-longest-lived-then-shortest-lived",
        ),
    ),
    (TaskIdentifyLifeStages1, ("identify-life-stages-1",)),
    (TaskIdentifyLifeStages2, ("identify-life-stages-2",)),
    (TaskInclinedPlane1, ("inclined-plane-friction-named-surfaces",)),
    (TaskInclinedPlane2, ("inclined-plane-friction-unnamed-surfaces",)),
    (TaskInclinedPlane3, ("inclined-plane-determine-angle",)),
    (TaskMendelianGenetics1, ("mendelian-genetics-known-plant",)),
    (TaskMendelianGenetics2, ("mendelian-genetics-unknown-plant",)),
    (TaskUseInstrumentThermometer, ("use-thermometer",)),
    (TaskUseInstrumentThermometer2, ("measure-melting-point-known-substance",)),
    (TaskUseInstrumentThermometer3, ("measure-melting-point-unknown-substance",)),
)
"""The tasks in the order in which the engine makes them, which that of its draws depends on."""

_TASKS: Final = tuple(kind(name) for kind, names in _KINDS for name in names)

TASK_NAMES: Final = tuple(sorted(task.name for task in _TASKS))
"""The engine's names of the tasks, sorted."""


class TaskMaker1:
    """Makes the things of one variation before the house is there, and its goals after.

    `task` is None if no task has the name, `modifiers` if there is no such variation.
    """

    def __init__(self, world: World, task_name: str, variation_idx: int) -> None:
        """Make the things of a variation, with the draws that the engine makes them with."""
        self.world = world
        self.task_name = task_name
        self.variation_idx = variation_idx
        self.task: TaskParametric | None = None
        self.modifiers: list[TaskModifier] | None = None
        draws = 0
        for task in _TASKS:
            if task.name == task_name:
                self.task = task
                break
            draws += task.DRAWS
        if self.task is not None and variation_idx < self.task.COUNT:
            skip_draws(world, draws)
            self.modifiers = self.task.combination(world, variation_idx)

    def do_task_setup(self, universe: EnvObject, agent: Agent) -> tuple[Task | None, str]:
        """Change the house for the task; return the task, or None, and the error."""
        if self.task is None:
            return None, f"ERROR: Unknown task ({self.task_name})."
        if self.modifiers is None:
            return None, (
                f"ERROR: The requested variation ({self.variation_idx}) exceeds "
                f"the total number of variations ({self.task.COUNT})."
            )
        self.world.random.set_seed(self.variation_idx)
        worked, error = self.task.setup_combination(
            self.modifiers, self.variation_idx, universe, agent
        )
        return (self.make_goals() if worked else None), error

    def make_goals(self) -> Task:
        """Return the task with new goals, which may draw."""
        assert self.task is not None
        assert self.modifiers is not None, "there is such a variation"
        return self.task.setup_goals(self.world, self.modifiers, self.variation_idx)

    def create_gold_actions(self, runner: Runner) -> tuple[list[str], bool]:
        """Play the engine's solution in a game that has just begun; tell whether it was found."""
        made = self.make_goals()  # which the engine drops, but it may draw
        found = solve(made.task_name, Notes(notes(made.task_modifiers)), self.variation_idx, runner)
        return runner.action_history(), found
