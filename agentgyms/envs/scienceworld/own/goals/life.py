"""Goals about the stages of lives."""

from __future__ import annotations

from typing import Any

from agentgyms.envs.scienceworld.own.goals.base import (
    UNSUCCESSFUL,
    GoalReturn,
    Memory,
    SameFocusGoal,
    Sight,
    SightGoal,
    when,
)
from agentgyms.envs.scienceworld.own.life.living import LivingThing
from agentgyms.envs.scienceworld.own.objects.base import EnvObject


def _in_stage(obj: LivingThing, stage: str) -> bool:
    return obj.lifecycle is not None and obj.lifecycle.cur_stage_name().lower() == stage


class GoalLifeStage(SameFocusGoal):
    """The focus is of a species, in a stage of its life."""

    __slots__ = ("species", "stage")

    def __init__(self, species: str, stage: str, description: str) -> None:
        super().__init__(description)
        self.species = species
        self.stage = stage.lower()

    def judge(self, focus: EnvObject, sight: Sight, goals: Memory) -> GoalReturn:
        """Compare the species, if the focus has one, and the stage."""
        if focus.prop_life is not None and focus.prop_life.lifeform_type != self.species:
            return UNSUCCESSFUL
        return when(isinstance(focus, LivingThing) and _in_stage(focus, self.stage))


class GoalLifeStageAnywhere(SightGoal):
    """Some living things of a species are in a stage of their lives in the location."""

    __slots__ = ("number", "species", "stage")

    def __init__(
        self, species: str, stage: str, number: int, description: str, **common: Any
    ) -> None:
        super().__init__(description, **common)
        self.species = species
        self.stage = stage.lower()
        self.number = number

    def seen(self, location: EnvObject, sight: Sight, goals: Memory) -> bool:
        """Count them."""
        return sum(map(self._is_one, sight.objects())) >= self.number

    def _is_one(self, obj: EnvObject) -> bool:
        if not isinstance(obj, LivingThing) or obj.prop_life is None:
            return False
        return obj.prop_life.lifeform_type == self.species and _in_stage(obj, self.stage)
