"""The solution of each task."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from agentgyms.envs.scienceworld.own.gold.changes import change_state
from agentgyms.envs.scienceworld.own.gold.chemistry import mix, mix_paint
from agentgyms.envs.scienceworld.own.gold.circuits import power, test_conductivity
from agentgyms.envs.scienceworld.own.gold.finding import find_living_thing, find_nonliving_thing
from agentgyms.envs.scienceworld.own.gold.growing import grow_fruit, grow_plant
from agentgyms.envs.scienceworld.own.gold.heredity import find_dominance
from agentgyms.envs.scienceworld.own.gold.lives import find_life_spans, identify_life_stages
from agentgyms.envs.scienceworld.own.gold.planes import compare_planes
from agentgyms.envs.scienceworld.own.gold.thermometer import (
    measure_melting_point,
    measure_temperature,
)
from agentgyms.envs.scienceworld.own.life.crossed import PeaPlant, RandomGeneticsPlants

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.gold.running import Runner
    from agentgyms.envs.scienceworld.own.tasks.parametric import Notes


def solve(task_name: str, given: Notes, variation_idx: int, runner: Runner) -> bool:
    """Play the engine's solution of a task; tell whether it reached its end."""
    if task_name == "power-component-renewable-vs-nonrenewable-energy":
        return power(given, "nonrenewable" if variation_idx % 2 else "renewable", runner)
    solution, *arguments = _SOLUTIONS[task_name]
    assert callable(solution)
    return bool(solution(given, *arguments, runner))


_SOLUTIONS: Final[dict[str, tuple[Callable[..., bool] | object, ...]]] = {
    "boil": (change_state, "boil"),
    "change-the-state-of-matter-of": (change_state, "change"),
    "chemistry-mix": (mix,),
    "chemistry-mix-paint-secondary-color": (mix_paint, False),
    "chemistry-mix-paint-tertiary-color": (mix_paint, True),
    "find-animal": (find_living_thing, "animal"),
    "find-living-thing": (find_living_thing, ""),
    "find-non-living-thing": (find_nonliving_thing,),
    "find-plant": (find_living_thing, "plant"),
    "freeze": (change_state, "freeze"),
    "grow-fruit": (grow_fruit,),
    "grow-plant": (grow_plant,),
    "identify-life-stages-1": (identify_life_stages, "animal"),
    "identify-life-stages-2": (identify_life_stages, "livingThingName"),
    "inclined-plane-determine-angle": (compare_planes,),
    "inclined-plane-friction-named-surfaces": (compare_planes,),
    "inclined-plane-friction-unnamed-surfaces": (compare_planes,),
    "lifespan-longest-lived": (find_life_spans, ("long",)),
    "lifespan-longest-lived-then-shortest-lived": (find_life_spans, ("long", "short")),
    "lifespan-shortest-lived": (find_life_spans, ("short",)),
    "measure-melting-point-known-substance": (measure_melting_point, True),
    "measure-melting-point-unknown-substance": (measure_melting_point, False),
    "melt": (change_state, "melt"),
    "mendelian-genetics-known-plant": (find_dominance, PeaPlant),
    "mendelian-genetics-unknown-plant": (find_dominance, RandomGeneticsPlants),
    "power-component": (power, ""),
    "test-conductivity": (test_conductivity, True),
    "test-conductivity-of-unknown-substances": (test_conductivity, False),
    "use-thermometer": (measure_temperature,),
}
