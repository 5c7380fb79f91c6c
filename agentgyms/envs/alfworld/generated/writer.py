"""Writes generated tasks as official game files for the official engine."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, Final

from agentgyms.core.tasks import check_split
from agentgyms.envs.alfworld.builder import build_game
from agentgyms.envs.alfworld.expert import walkthrough
from agentgyms.envs.alfworld.generated import generator
from agentgyms.envs.alfworld.official.gamefile import GAME_FILE, TASK_TYPES
from agentgyms.envs.alfworld.problem import Goal, Problem

_UNKNOWN: Final = "UNKNOWN GOAL"
_DECLARED: Final = frozenset(
    {"knifetype", "butterknifetype", "sinkbasintype", "microwavetype", "fridgetype"}
)
"""Types that the PDDL rules declare."""

_STORED: Final = "(objectType ?o {o}) (receptacleType ?r {p}) (inReceptacle ?o ?r)"
_TREATED: Final = "({able} ?o) ({done} ?o) " + _STORED
_GOALS: Final = {
    "pick": ("?o - object ?r - receptacle", _STORED),
    "clean": (
        "?o - object ?r - receptacle",
        _TREATED.replace("{able}", "cleanable").replace("{done}", "isClean"),
    ),
    "heat": (
        "?o - object ?r - receptacle",
        _TREATED.replace("{able}", "heatable").replace("{done}", "isHot"),
    ),
    "cool": (
        "?o - object ?r - receptacle",
        _TREATED.replace("{able}", "coolable").replace("{done}", "isCool"),
    ),
    "pick2": (
        "?o - object ?other - object ?r - receptacle",
        f"(not (= ?o ?other)) {_STORED} (objectType ?other {{o}}) (inReceptacle ?other ?r)",
    ),
    "look": (
        "?lamp - object ?r - receptacle ?o - object ?a - agent ?l - location",
        "(objectType ?lamp {p}) (toggleable ?lamp) (isToggled ?lamp) (inReceptacle ?lamp ?r) "
        "(receptacleAtLocation ?r ?l) (atLocation ?a ?l) (objectType ?o {o}) (holds ?a ?o)",
    ),
}
"""The quantified variables and the condition of each family's goal."""


def write_games(
    split: str, folder: Path, *, rooms: str = "small", task_ids: Iterable[str] | None = None
) -> list[Path]:
    """Write generated tasks to `folder/<split>/<task>/<trial>/`, and return the game files.

    The folders are ALFWorld's, which has none for `sample`: those tasks, all from train, go to
    `train`. Existing files are replaced. `task_ids` are some of the split's tasks; None takes all.
    """
    check_split(split, tuple(generator.COUNTS), "the generator")
    if task_ids is None:
        task_ids = [task.task_id for task in generator.list_tasks(rooms, split)]
    below = folder / ("train" if split == "sample" else split)
    return [_write_game(below, task_id) for task_id in task_ids]


def _write_game(folder: Path, task_id: str) -> Path:
    made, problem = generator.household(task_id), generator.generate(task_id)
    task_type = next(name for name, family in TASK_TYPES.items() if family == made.family)
    task = f"{task_type}-{made.target}-None-{made.place}-{made.plan.number}"
    path = folder / task / f"trial_{task_id.replace('-', '_')}" / GAME_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(game_fields(problem, task_id)), encoding="utf-8")
    path.with_name("traj_data.json").write_text(
        json.dumps(_trajectory(made, problem, task_id, task_type), indent=1), encoding="utf-8"
    )
    return path


def _trajectory(
    made: generator.Household, problem: Problem, task_id: str, task_type: str
) -> dict[str, Any]:
    """Return the fields of `traj_data.json` that alfworld's loader and scripted expert read."""
    lamp = made.family == "look"
    return {
        "task_id": task_id,
        "task_type": task_type,
        "pddl_params": {
            "object_target": made.target,
            "parent_target": "" if lamp else made.place,
            "toggle_target": made.place if lamp else "",
            "mrecep_target": "",
            "object_sliced": False,
        },
        "turk_annotations": {"anns": [{"task_desc": problem.sentence, "high_descs": []}]},
        "scene": {"floor_plan": f"{made.plan.room.name} {made.plan.number}"},
    }


def game_fields(problem: Problem, name: str) -> dict[str, Any]:
    """Return the content of a game file, with the commands of `best` as its walkthrough."""
    return {
        "pddl_domain": resource("household.pddl"),
        "grammar": resource("household.twl2").replace(_UNKNOWN, problem.sentence),
        "pddl_problem": pddl_problem(problem, name),
        "solvable": True,
        "walkthrough": list(walkthrough(build_game(problem, name))),
    }


@lru_cache(maxsize=2)
def resource(name: str) -> str:
    """Return the text of a file of this package."""
    return (
        resources.files("agentgyms.envs.alfworld.generated")
        .joinpath(name)
        .read_text(encoding="utf-8")
    )


def pddl_problem(problem: Problem, name: str) -> str:
    """Return a problem in PDDL."""
    objects = "\n".join(f"    {key} - {kind}" for key, kind in sorted(_types(problem).items()))
    facts = "\n".join(
        f"    ({' '.join((predicate, *fact))})"
        for predicate, known in sorted(problem.facts.items())
        for fact in known
    )
    return (
        f"(define (problem {name})\n  (:domain alfred)\n  (:objects\n{objects})\n"
        f"  (:init\n{facts})\n  (:goal {_condition(problem.goal)}))\n"
    )


def _types(problem: Problem) -> dict[str, str]:
    """Return the types of all things in the facts, except those that the rules declare."""
    types = {key: "otype" for _, key in problem.pairs("objecttype")}
    types |= {key: "rtype" for _, key in problem.pairs("receptacletype")}
    types |= {f"{problem.goal.target}type": "otype"}
    types |= {f"{problem.goal.place}type": "otype" if problem.goal.family == "look" else "rtype"}
    types = {key: kind for key, kind in types.items() if key not in _DECLARED}
    types |= {key: "object" for key, _ in problem.pairs("objecttype")}
    types |= {key: "receptacle" for key, _ in problem.pairs("receptacleatlocation")}
    types |= {key: "location" for _, key in problem.pairs("receptacleatlocation")}
    types |= {key: "location" for _, key in problem.pairs("objectatlocation")}
    for agent, place in problem.pairs("atlocation"):
        types |= {agent: "agent", place: "location"}
    return types


def _condition(goal: Goal) -> str:
    variables, literals = _GOALS[goal.family]
    wanted = literals.format(o=f"{goal.target}type", p=f"{goal.place}type")
    return f"(exists ({variables})\n    (and {wanted}))"
