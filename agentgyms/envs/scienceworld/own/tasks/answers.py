"""The boxes that an answer is given by, and the letters of what is unknown."""

from __future__ import annotations

from typing import Final

from agentgyms.envs.scienceworld.own.objects.taskitems import AnswerBox
from agentgyms.envs.scienceworld.own.tasks.modifiers import TaskModifier, TaskValue, placed
from agentgyms.envs.scienceworld.own.world import World

COLORS: Final = ("red", "green", "blue", "orange", "yellow", "purple")
LETTERS: Final = "BCDEFGHJKLMNOPQRSTUVWXYZ"
"""The letters of unknown substances; tasks leave out A and I."""


def answer_boxes(world: World, room: str, at: int, first: str, second: str) -> list[TaskModifier]:
    """Return two boxes of colors that follow each other, and their names as notes."""
    boxes = (AnswerBox(world, COLORS[at]), AnswerBox(world, COLORS[at + 1]))
    return [
        *(placed(box, room) for box in boxes),
        TaskValue(first, boxes[0].name),
        TaskValue(second, boxes[1].name),
    ]
