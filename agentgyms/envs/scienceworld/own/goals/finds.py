"""Goals to focus on the right thing."""

from __future__ import annotations

from typing import Any

from agentgyms.envs.scienceworld.own.goals.base import (
    FAILURE,
    SUCCESS,
    UNSUCCESSFUL,
    FocusGoal,
    GoalReturn,
    Memory,
    Sight,
)
from agentgyms.envs.scienceworld.own.life.animals import Animal
from agentgyms.envs.scienceworld.own.life.living import LivingThing
from agentgyms.envs.scienceworld.own.life.plants import Plant
from agentgyms.envs.scienceworld.own.objects.base import EnvObject
from agentgyms.envs.scienceworld.own.objects.planes import InclinedPlane
from agentgyms.envs.scienceworld.own.objects.taskitems import AnswerBox


class _RightFocus(FocusGoal):
    """A goal that a wrong focus fails, and the task with it."""

    __slots__ = ()

    def judge(self, focus: EnvObject, sight: Sight, goals: Memory) -> GoalReturn:
        return SUCCESS if self.is_right(focus) else FAILURE

    def is_right(self, focus: EnvObject) -> bool:
        raise NotImplementedError


class GoalFocusOnLivingThing(_RightFocus):
    """The focus is alive, or was."""

    __slots__ = ()

    def is_right(self, focus: EnvObject) -> bool:
        """Tell whether the focus is of a living kind."""
        return isinstance(focus, LivingThing)


class GoalFocusOnNonlivingThing(FocusGoal):
    """The focus was never alive, and can be moved."""

    __slots__ = ()

    def judge(self, focus: EnvObject, sight: Sight, goals: Memory) -> GoalReturn:
        """Tell whether the focus is such a thing; one that cannot be moved fails nothing."""
        if isinstance(focus, LivingThing):
            return FAILURE
        movable = focus.prop_moveable is not None and focus.prop_moveable.is_movable
        return SUCCESS if movable else UNSUCCESSFUL


class GoalFocusOnAnimal(_RightFocus):
    """The focus is an animal."""

    __slots__ = ()

    def is_right(self, focus: EnvObject) -> bool:
        """Tell whether the focus is an animal."""
        return isinstance(focus, Animal)


class GoalFocusOnPlant(_RightFocus):
    """The focus is a plant."""

    __slots__ = ()

    def is_right(self, focus: EnvObject) -> bool:
        """Tell whether the focus is a plant."""
        return isinstance(focus, Plant)


class _Named(_RightFocus):
    __slots__ = ("name",)

    def __init__(self, name: str, description: str = "", **common: Any) -> None:
        super().__init__(description, **common)
        self.name = name


class GoalFind(_Named):
    """The focus has a name."""

    __slots__ = ()

    def is_right(self, focus: EnvObject) -> bool:
        """Compare the name of the focus."""
        return focus.name.lower() == self.name.lower()


class GoalFindAnswerBox(_Named):
    """The focus is an answer box with a name; a focus that is no answer box fails nothing."""

    __slots__ = ()

    def judge(self, focus: EnvObject, sight: Sight, goals: Memory) -> GoalReturn:
        """Tell whether the focus is the right box."""
        if not isinstance(focus, AnswerBox):
            return UNSUCCESSFUL
        return super().judge(focus, sight, goals)

    def is_right(self, focus: EnvObject) -> bool:
        """Compare the name of the focus."""
        return focus.name.lower() == self.name.lower()


class GoalFindInclinedPlane(_Named):
    """The focus is an inclined plane with a surface."""

    __slots__ = ()

    def is_right(self, focus: EnvObject) -> bool:
        """Compare the surface of the focus."""
        if not isinstance(focus, InclinedPlane) or focus.name.lower() != "inclined plane":
            return False
        return bool(focus.surface_material.substance_name == self.name)


class GoalFindInclinedPlaneNamed(_Named):
    """The focus is an inclined plane with a letter."""

    __slots__ = ()

    def is_right(self, focus: EnvObject) -> bool:
        """Compare the letter of the focus."""
        if not isinstance(focus, InclinedPlane) or focus.name.lower() != "inclined plane":
            return False
        return bool(focus.additional_name == self.name)


class GoalFindLivingThingStage(_RightFocus):
    """The focus is of a species, in a stage of its life."""

    __slots__ = ("species", "stage")

    def __init__(self, species: str, stage: str, description: str, **common: Any) -> None:
        super().__init__(description, **common)
        self.species = species.lower()
        self.stage = stage

    def is_right(self, focus: EnvObject) -> bool:
        """Compare the species and the stage of the focus."""
        if focus.prop_life is None or focus.prop_life.lifeform_type != self.species:
            return False
        if not isinstance(focus, LivingThing) or focus.lifecycle is None:
            return False
        return focus.lifecycle.cur_stage_name() == self.stage
