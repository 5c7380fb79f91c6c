"""Goals about actions of the agent that are past."""

from __future__ import annotations

from typing import Any

from agentgyms.envs.scienceworld.own.goals.base import Goal, GoalReturn, Memory, Sight, when
from agentgyms.envs.scienceworld.own.objects.base import EnvObject


def _is_called(obj: EnvObject, name: str) -> bool:
    return name in (obj.name.lower(), obj.descript_name().lower())


class _PastAction(Goal):
    """A goal that an action of the class `ACTION` reaches after the goal's first check."""

    __slots__ = ("activated_at_step",)

    ACTION = ""

    def __init__(self, description: str, **common: Any) -> None:
        super().__init__(description, **common)
        self.activated_at_step = -1

    def check(self, focus: EnvObject | None, sight: Sight, goals: Memory) -> GoalReturn:
        if self.activated_at_step == -1:
            self.activated_at_step = sight.agent.action_history_size()
        past = sight.agent.action_history_since(self.activated_at_step)
        return when(
            any(
                type(action).__name__ == self.ACTION and self.fits(action.assignments)
                for action in past
            )
        )

    def fits(self, assignments: dict[str, EnvObject]) -> bool:
        raise NotImplementedError


class GoalPastActionExamineObject(_PastAction):
    """The agent has looked at a thing."""

    __slots__ = ("name",)

    ACTION = "ActionLookAt"

    def __init__(self, name: str, description: str, **common: Any) -> None:
        super().__init__(description, **common)
        self.name = name.lower()

    def fits(self, assignments: dict[str, EnvObject]) -> bool:
        """Compare the name of the thing, as it is called now."""
        return _is_called(assignments["obj"], self.name)


class GoalPastActionReadObject(_PastAction):
    """The agent has read a document."""

    __slots__ = ("name",)

    ACTION = "ActionRead"

    def __init__(self, name: str, description: str, **common: Any) -> None:
        super().__init__(description, **common)
        self.name = name.lower()

    def fits(self, assignments: dict[str, EnvObject]) -> bool:
        """Compare the name of the document, as it is called now."""
        return _is_called(assignments["document"], self.name)


class GoalPastActionUseObjectOnObject(_PastAction):
    """The agent has used a device, or has used anything on a thing: the engine takes either."""

    __slots__ = ("device", "patient")

    ACTION = "ActionUseDevice"

    def __init__(self, device: str, patient: str, description: str, **common: Any) -> None:
        super().__init__(description, **common)
        self.device = device.lower()
        self.patient = patient.lower()

    def fits(self, assignments: dict[str, EnvObject]) -> bool:
        """Compare the names of both, as they are called now."""
        if assignments["device"].name.lower() == self.device:
            return True
        return assignments["patient"].descript_name().lower() == self.patient
