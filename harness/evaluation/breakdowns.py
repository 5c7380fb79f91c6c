"""Breakdowns of a benchmark's results: by question set, number of boxes, difficulty, dimension.

A breakdown is `{title: {group: {column: mean, ..., "count": episodes}}}`; each mean is one of
`harness.evaluation.units.mean_of`. Other environments are grouped by family only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from harness.evaluation.units import (
    Unit,
    Value,
    grouped,
    mean_of,
    mean_over,
    success_and_score,
)

Breakdown = dict[str, dict[str, dict[str, Any]]]

ALL: Final = "All"
"""Group of all episodes."""

ALFWORLD: Final = {
    "pick": "Pick",
    "look": "Look",
    "clean": "Clean",
    "heat": "Heat",
    "cool": "Cool",
    "pick2": "Pick2",
}
"""Families in the order of SCPO's and SALT's Table 1, with their headings."""

DATA_SETS: Final = {
    "nq": "NQ",
    "triviaqa": "TriviaQA",
    "popqa": "PopQA",
    "hotpotqa": "HotpotQA",
    "2wikimultihopqa": "2Wiki",
    "musique": "MuSiQue",
    "bamboogle": "Bamboogle",
}
"""Question sets in the order of ECPO, Table 4, with their headings."""

DIMENSIONS: Final = {
    "goal": "Goal",
    "believability": "Believability",
    "relationship": "Relationship",
    "knowledge": "Knowledge",
    "secret": "Secret",
    "social_rules": "Social rules",
    "financial_and_material_benefits": "Financial",
}
"""SOTOPIA's seven dimensions, by the names its judge gives them."""

SCENARIO_TASKS: Final = 3
"""Tasks of a scenario, in every split of AppWorld."""


def in_order(families: Iterable[str]) -> list[str]:
    """Return families sorted: those of the papers first, in the papers' order, then by name."""
    known = [*ALFWORLD, *DATA_SETS]
    return sorted(families, key=lambda n: (known.index(n) if n in known else len(known), n))


def env_name(env_id: str) -> str:
    """Return an environment's name: its id without module, namespace and version."""
    return re.sub(r"^.*[/:]|-v\d+$", "", env_id)


def breakdowns_of(env_id: str, units: Sequence[Unit], seeds: Sequence[int]) -> Breakdown:
    """Return the breakdowns of an environment from all played units; {} if it has none."""
    make = _BREAKDOWNS.get(env_name(env_id))
    return make(units, seeds) if make and units else {}


def _sokoban(units: Sequence[Unit], seeds: Sequence[int]) -> Breakdown:
    """Return success by number of boxes, {} if a task's id does not contain it."""
    boxes = {unit.task_id: _boxes(unit) for unit in units}
    if None in boxes.values():
        return {}
    groups = grouped(units, lambda unit: str(boxes[unit.task_id]))
    return {"Boxes": {name: success_and_score(group, seeds) for name, group in groups.items()}}


def _boxes(unit: Unit) -> str | None:
    """Return the number of boxes: `train/6x6-2-2f19-00001` has 2, and so has family `2-boxes`."""
    found = re.search(r"(?:^|/)\d+x\d+-(\d+)-[0-9a-f]+-\d+$", unit.task_id)
    found = found or re.match(r"(\d+)-box(?:es)?$", unit.family)
    return found[1] if found else None


def _searchqa(units: Sequence[Unit], seeds: Sequence[int]) -> Breakdown:
    """Return exact match, which is success, and F1, by question set.

    The names of generated question sets are their numbers of hops.
    """

    def measures(chosen: Sequence[Unit]) -> dict[str, Any]:
        return {
            "EM": mean_over(chosen, seeds, lambda unit: unit.success),
            "F1": mean_over(chosen, seeds, lambda unit: unit.metric("f1")),
            "count": len(chosen),
        }

    groups = grouped(units, lambda unit: unit.family)
    named = {DATA_SETS.get(name, name): measures(groups[name]) for name in in_order(groups)}
    return {"Data set": {**named, ALL: measures(units)}}


def _appworld(units: Sequence[Unit], seeds: Sequence[int]) -> Breakdown:
    """Return task and scenario goal completion, of all tasks and by difficulty."""
    groups = grouped(units, _difficulty)
    known = groups if "" not in groups else {}
    by_level = {name: _completion(level_units, seeds) for name, level_units in known.items()}
    return {"Difficulty": {**by_level, ALL: _completion(units, seeds)}}


def _difficulty(unit: Unit) -> str:
    """Return 1, 2 or 3 from the metric `difficulty`, else from the digit in the family's name."""
    level = unit.metric("difficulty")
    if level is not None:
        return f"{level:.0f}"
    found = re.search(r"\d", unit.family)
    return found[0] if found else ""


def _completion(units: Sequence[Unit], seeds: Sequence[int]) -> dict[str, Any]:
    """Return TGC, the share of solved tasks, and SGC, the share of wholly solved scenarios.

    A scenario counts in SGC only if all three of its tasks were finished.
    """
    scenarios: dict[tuple[str, int], list[Unit]] = {}
    for unit in units:
        scenarios.setdefault((unit.task_id.rpartition("_")[0], unit.seed), []).append(unit)
    whole = [
        Value(float(all(unit.success for unit in tasks)), name, seed)
        for (name, seed), tasks in scenarios.items()
        if len(tasks) == SCENARIO_TASKS
    ]
    return {
        "TGC": mean_over(units, seeds, lambda unit: unit.success),
        "SGC": mean_of(whole, seeds),
        "count": len(units),
        "incomplete_scenarios": len(scenarios) - len(whole),
    }


def _sotopia(units: Sequence[Unit], seeds: Sequence[int]) -> Breakdown:
    """Return the goal score of the hard tasks and of all tasks, and the mean of every dimension.

    A task is hard if its family is `hard` or its metric `hard` is 1. If all tasks are hard, only
    the group of hard tasks is returned.
    """

    def mean(chosen: Sequence[Unit], name: str) -> dict[str, Any]:
        rating = mean_over(chosen, seeds, lambda unit: unit.metric(name), share=False)
        return {"Mean": rating, "count": len(chosen)}

    hard = [unit for unit in units if unit.family == "hard" or unit.metric("hard") == 1]
    sets = {"Hard": hard} if hard else {}
    if len(hard) < len(units):
        sets[ALL] = list(units)
    return {
        "Goal": {name: mean(chosen, "goal") for name, chosen in sets.items()},
        "Dimension": {heading: mean(units, name) for name, heading in DIMENSIONS.items()},
    }


_BREAKDOWNS: Final[dict[str, Callable[[Sequence[Unit], Sequence[int]], Breakdown]]] = {
    "Sokoban": _sokoban,
    "VisualSokoban": _sokoban,
    "SearchQA": _searchqa,
    "AppWorld": _appworld,
    "SOTOPIA": _sotopia,
}
