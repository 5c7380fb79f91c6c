"""Goals and things that several tasks share."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final, TypeVar

from agentgyms.envs.scienceworld.own.goals.base import Goal
from agentgyms.envs.scienceworld.own.goals.contents import (
    GoalObjectInContainer,
    GoalSpecificObjectInDirectContainer,
)
from agentgyms.envs.scienceworld.own.goals.devices import GoalActivateDeviceWithName
from agentgyms.envs.scienceworld.own.goals.matter import GoalTemperatureOnFire
from agentgyms.envs.scienceworld.own.objects.taskitems import AnswerBox
from agentgyms.envs.scienceworld.own.random import JavaRandom
from agentgyms.envs.scienceworld.own.tasks.modifiers import TaskModifier, TaskValue, placed
from agentgyms.envs.scienceworld.own.world import World

T = TypeVar("T")

COLORS: Final = ("red", "green", "blue", "orange", "yellow", "purple")
LETTERS: Final = "BCDEFGHJKLMNOPQRSTUVWXYZ"
"""The letters of unknown substances; tasks leave out A and I."""

_HEATERS: Final = ("stove", "blast furnace", "oven", "hot plate")


def heater_goals(thing: str, *prerequisites: str) -> list[Goal]:
    """Return the goals of one who heats a thing: a device on, a fire, and the focus there."""
    out: list[Goal] = [
        GoalActivateDeviceWithName(name, f"activate heater ({name})") for name in _HEATERS
    ]
    out += [
        GoalSpecificObjectInDirectContainer("inventory", "lighter", "have lighter in inventory"),
        GoalSpecificObjectInDirectContainer(
            "fire pit", "wood", "move wood into fire pit", key="wood1"
        ),
        GoalTemperatureOnFire("wood", "ignite wood", key="ignite", prerequisites=("wood1",)),
    ]
    out += [
        GoalObjectInContainer(name, f"have {thing} on heater ({name})", prerequisites=prerequisites)
        for name in (*_HEATERS, "fire pit")
    ]
    return out


def answer_boxes(world: World, room: str, at: int, first: str, second: str) -> list[TaskModifier]:
    """Return two boxes of colors that follow each other, and their names as notes."""
    boxes = (AnswerBox(world, COLORS[at]), AnswerBox(world, COLORS[at + 1]))
    return [
        *(placed(box, room) for box in boxes),
        TaskValue(first, boxes[0].name),
        TaskValue(second, boxes[1].name),
    ]


def shuffled(items: Sequence[T], seed: int) -> list[T]:
    """Return the items in the order that a new generator gives them."""
    return JavaRandom(seed).shuffle(items)


@lru_cache(maxsize=8)
def subsampled(count: int, proportion: float) -> tuple[int, ...]:
    """Return the combinations that the engine picks of the train, dev and test sets of many."""
    ends = [0, int(count * 0.5), int(count * 0.75), count]
    random = JavaRandom(5)
    out: list[int] = []
    for begin, end in pairwise(ends):
        taken = int((end - begin) * proportion)
        out += random.shuffle(range(begin, end))[:taken]
    return tuple(out)
