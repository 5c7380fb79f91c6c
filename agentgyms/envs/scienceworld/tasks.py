"""The tasks of ScienceWorld 1.2.3: 30 of them, with 7,207 variations, and the official splits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from agentgyms.core.errors import BadOption, did_you_mean
from agentgyms.core.tasks import Task, TaskSet

VARIATIONS: Final = {
    "boil": 30,
    "change-the-state-of-matter-of": 30,
    "chemistry-mix": 32,
    "chemistry-mix-paint-secondary-color": 36,
    "chemistry-mix-paint-tertiary-color": 36,
    "find-animal": 300,
    "find-living-thing": 300,
    "find-non-living-thing": 300,
    "find-plant": 300,
    "freeze": 30,
    "grow-fruit": 126,
    "grow-plant": 126,
    "identify-life-stages-1": 14,
    "identify-life-stages-2": 10,
    "inclined-plane-determine-angle": 168,
    "inclined-plane-friction-named-surfaces": 1386,
    "inclined-plane-friction-unnamed-surfaces": 162,
    "lifespan-longest-lived": 125,
    "lifespan-longest-lived-then-shortest-lived": 125,
    "lifespan-shortest-lived": 125,
    "measure-melting-point-known-substance": 436,
    "measure-melting-point-unknown-substance": 300,
    "melt": 30,
    "mendelian-genetics-known-plant": 120,
    "mendelian-genetics-unknown-plant": 480,
    "power-component": 20,
    "power-component-renewable-vs-nonrenewable-energy": 20,
    "test-conductivity": 900,
    "test-conductivity-of-unknown-substances": 600,
    "use-thermometer": 540,
}
"""The engine's names of the tasks, and how many variations each has."""

SPLITS: Final = ("train", "dev", "test", "sample")
"""The engine's names of the splits, and `sample`, the first variation of each task."""

SIMPLIFICATIONS: Final = (
    "noElectricalAction",
    "openContainers",
    "openDoors",
    "selfWateringFlowerPots",
    "teleportAction",
)


def numbers(name: str, split: str) -> range:
    """Return the variations that a split has of a task, as the engine divides them."""
    count = VARIATIONS[name]
    quarter = count // 4
    ends = {"train": 2 * quarter, "dev": 3 * quarter, "test": count, "sample": 1}
    begins = {"dev": ends["train"], "test": ends["dev"]}
    return range(begins.get(split, 0), ends[split])


def task_set(split: str, families: tuple[str, ...]) -> TaskSet:
    """Return the variations of a split as tasks, such as `boil/14`."""
    return TaskSet(
        split,
        [Task(f"{name}/{number}", name) for name in families for number in numbers(name, split)],
    )


def parsed(task: Task) -> tuple[str, int]:
    """Return the engine's name and the variation of a task."""
    name, _, number = task.task_id.partition("/")
    return name, int(number)


def check_families(given: Any) -> tuple[str, ...]:
    """Return the names of tasks, sorted; None stands for all."""
    if given is None:
        return tuple(VARIATIONS)
    listed = isinstance(given, Sequence) and not isinstance(given, str)
    if not listed or not given or any(name not in VARIATIONS for name in given):
        unknown = [name for name in given if name not in VARIATIONS] if listed else []
        hint = did_you_mean(unknown[0], VARIATIONS) if unknown else ""
        raise BadOption(
            "families must be a list of some of ScienceWorld's 30 tasks, such as ['boil', 'melt'], "
            f"got {given!r:.80}{hint}"
        )
    return tuple(sorted(set(given)))


def check_simplification(given: object, families: tuple[str, ...]) -> str:
    """Return simplifications as the engine reads them: in its order, with commas."""
    names = given.split(",") if isinstance(given, str) else None
    wanted = sorted({name.strip() for name in names or () if name.strip()})
    known = ("easy", *SIMPLIFICATIONS)
    if names is None or any(name not in known for name in wanted):
        raise BadOption(
            f"simplification must be '' or some of {', '.join(known)} with commas between them, "
            f"got {given!r:.80}"
        )
    electrical = [name for name in families if "power-component" in name or "conductivity" in name]
    if "noElectricalAction" in wanted and electrical:
        raise BadOption(
            f"noElectricalAction leaves {electrical[0]!r} without a solution: give `families` "
            "without power-component and test-conductivity tasks, or simplification='easy'"
        )
    return ",".join(wanted)
