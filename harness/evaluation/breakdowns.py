"""Breakdowns of a benchmark's results, such as by question set, number of boxes or difficulty.

A breakdown is `{title: {group: {column: mean, ..., "count": episodes}}}`; each mean is one of
`harness.evaluation.units.mean_of`. Other environments are grouped by family only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from harness.evaluation.units import Unit, Units, Value, mean_of

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


def breakdowns_of(env_id: str, units: Units) -> Breakdown:
    """Return the breakdowns of an environment from all played units; {} if it has none."""
    make = _BREAKDOWNS.get(env_name(env_id))
    return make(units) if make and units else {}


def _sokoban(units: Units) -> Breakdown:
    """Return success by number of boxes, {} if a task's id does not contain it."""
    groups = units.grouped(lambda unit: _boxes(unit) or "")
    named = {name: group.success_and_score() for name, group in groups.items()}
    return {} if "" in named else {"Boxes": named}


def _boxes(unit: Unit) -> str | None:
    """Return the number of boxes: `train/6x6-2-2f19-00001` has 2, and so has family `2-boxes`."""
    found = re.search(r"(?:^|/)\d+x\d+-(\d+)-[0-9a-f]+-\d+$", unit.last.task_id)
    found = found or re.match(r"(\d+)-box(?:es)?$", unit.last.family)
    return found[1] if found else None


def _searchqa(units: Units) -> Breakdown:
    """Return exact match, which is success, and F1, by question set or by number of hops."""

    def measures(chosen: Units) -> dict[str, Any]:
        f1 = chosen.mean(lambda unit: unit.metric("f1"))
        return {"EM": chosen.mean(lambda unit: unit.success), "F1": f1, "count": len(chosen)}

    groups = units.grouped(lambda unit: unit.last.family)
    named = {DATA_SETS.get(name, name): measures(groups[name]) for name in in_order(groups)}
    return {"Data set": {**named, ALL: measures(units)}}


def _appworld(units: Units) -> Breakdown:
    """Return task and scenario goal completion, of all tasks and by difficulty."""
    groups = units.grouped(_difficulty)
    by_level = {name: _completion(group) for name, group in groups.items() if "" not in groups}
    return {"Difficulty": {**by_level, ALL: _completion(units)}}


def _difficulty(unit: Unit) -> str:
    """Return 1, 2 or 3 from the metric `difficulty`, else from the digit in the family's name."""
    level = unit.metric("difficulty")
    if level is not None:
        return f"{level:.0f}"
    found = re.search(r"\d", unit.last.family)
    return found[0] if found else ""


def _completion(units: Units) -> dict[str, Any]:
    """Return TGC, the share of solved tasks, and SGC, the share of wholly solved scenarios.

    A scenario counts in SGC only if all three of its tasks were finished.
    """
    scenarios: dict[tuple[str, int], list[bool]] = {}
    for unit in units:
        name = unit.last.task_id.rpartition("_")[0]
        scenarios.setdefault((name, unit.last.seed), []).append(unit.success)
    whole = [
        Value(float(all(solved)), name, seed)
        for (name, seed), solved in scenarios.items()
        if len(solved) == SCENARIO_TASKS
    ]
    return {
        "TGC": units.mean(lambda unit: unit.success),
        "SGC": mean_of(whole, units.seeds),
        "count": len(units),
        "incomplete_scenarios": len(scenarios) - len(whole),
    }


def _sotopia(units: Units) -> Breakdown:
    """Return the goal score of the hard tasks and of all tasks, and the mean of every dimension.

    A task is hard if its family is `hard` or its metric `hard` is 1. If all tasks are hard, only
    the group of hard tasks is returned.
    """

    def mean(chosen: Units, name: str) -> dict[str, Any]:
        rating = chosen.mean(lambda unit: unit.metric(name), share=False)
        return {"Mean": rating, "count": len(chosen)}

    hard = [unit for unit in units if unit.last.family == "hard" or unit.metric("hard") == 1]
    sets = {"Hard": Units(hard, units.seeds)} if hard else {}
    if len(hard) < len(units):
        sets[ALL] = units
    return {
        "Goal": {name: mean(chosen, "goal") for name, chosen in sets.items()},
        "Dimension": {heading: mean(units, name) for name, heading in DIMENSIONS.items()},
    }


_BREAKDOWNS: Final[dict[str, Callable[[Units], Breakdown]]] = {
    "Sokoban": _sokoban,
    "VisualSokoban": _sokoban,
    "SearchQA": _searchqa,
    "AppWorld": _appworld,
    "SOTOPIA": _sotopia,
}
