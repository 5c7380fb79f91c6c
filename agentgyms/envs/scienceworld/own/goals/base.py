"""A goal, the answer of its check, and the sight that all goals of a tick share."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

from agentgyms.envs.scienceworld.own.objects.base import EnvObject

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.objects.agent import Agent


class GoalReturn(Enum):
    """The answer of a goal's check."""

    SUCCESS = 1
    FAILURE = 2
    UNSUCCESSFUL = 3


SUCCESS = GoalReturn.SUCCESS
FAILURE = GoalReturn.FAILURE
UNSUCCESSFUL = GoalReturn.UNSUCCESSFUL


def when(condition: bool) -> GoalReturn:
    """Return a success if the condition holds, else that the goal is not reached yet."""
    return SUCCESS if condition else UNSUCCESSFUL


class Sight:
    """All that an agent could see from where it stands, gathered once for many goals."""

    __slots__ = ("_named", "_objects", "agent", "location")

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.location: EnvObject | None = agent.container()
        self._objects: list[EnvObject] | None = None
        self._named: dict[str, list[EnvObject]] | None = None

    def objects(self) -> list[EnvObject]:
        """Return what is in the location at any depth, also in closed things, and the portals."""
        if self._objects is None:
            self._objects = []
            if self.location is not None:
                self._gather(self.location, self._objects)
        return self._objects

    def _gather(self, holder: EnvObject, out: list[EnvObject]) -> None:
        for obj in holder.contained_objects(include_hidden=False):
            out.append(obj)
            self._gather(obj, out)
        out.extend(holder.portals(include_hidden=False))

    def named(self, name: str) -> list[EnvObject]:
        """Return the objects that have a name in lower case, with or without a description."""
        if self._named is None:
            self._named = {}
            for obj in self.objects():
                plain, described = obj.name.lower(), obj.descript_name().lower()
                self._named.setdefault(plain, []).append(obj)
                if described != plain:
                    self._named.setdefault(described, []).append(obj)
        return self._named.get(name, [])


class Memory(Protocol):
    """A sequence's notes: the last focus that reached an ordered goal, and goals' values."""

    last_satisfied_with_object: EnvObject | None
    stored_values: dict[str, str]


class Goal:
    """A condition that the game checks after each action and each tick.

    It counts once all `prerequisites` are noted, and its `key` is noted once it is reached. Then
    `satisfied_with_object` is the focus that reached it, and stays so for the goals after it; with
    `defocus_on_success` the agent loses its focus.
    """

    __slots__ = (
        "defocus_on_success",
        "description",
        "key",
        "prerequisites",
        "satisfied_with_object",
    )

    def __init__(
        self,
        description: str = "",
        *,
        key: str = "",
        prerequisites: tuple[str, ...] = (),
        defocus_on_success: bool = False,
    ) -> None:
        self.description = description
        self.key = key
        self.prerequisites = prerequisites
        self.defocus_on_success = defocus_on_success
        self.satisfied_with_object: EnvObject | None = None

    def check(self, focus: EnvObject | None, sight: Sight, goals: Memory) -> GoalReturn:
        """Tell whether the goal is reached with a focus, or with none."""
        raise NotImplementedError


class FocusGoal(Goal):
    """A goal that only a focus can reach."""

    __slots__ = ()

    def check(self, focus: EnvObject | None, sight: Sight, goals: Memory) -> GoalReturn:
        """Judge the focus, and keep it if it reached the goal."""
        if focus is None:
            return UNSUCCESSFUL
        told = self.judge(focus, sight, goals)
        if told is SUCCESS:
            self.satisfied_with_object = focus
        return told

    def judge(self, focus: EnvObject, sight: Sight, goals: Memory) -> GoalReturn:
        """Tell whether the focus reaches the goal."""
        raise NotImplementedError


class SameFocusGoal(FocusGoal):
    """A goal for the focus that reached the goal before, if one did."""

    __slots__ = ()

    def check(self, focus: EnvObject | None, sight: Sight, goals: Memory) -> GoalReturn:
        """Judge the focus unless the goal before was reached with another."""
        last = goals.last_satisfied_with_object
        if last is not None and focus is not last:
            return UNSUCCESSFUL
        return super().check(focus, sight, goals)


class SightGoal(Goal):
    """A goal that needs no focus; it is not reached while the agent is nowhere."""

    __slots__ = ()

    def check(self, focus: EnvObject | None, sight: Sight, goals: Memory) -> GoalReturn:
        """Tell whether what is seen reaches the goal."""
        if sight.location is None:
            return UNSUCCESSFUL
        return when(self.seen(sight.location, sight, goals))

    def seen(self, location: EnvObject, sight: Sight, goals: Memory) -> bool:
        """Tell whether the location, or what is in it, reaches the goal."""
        raise NotImplementedError


class NamedSightGoal(SightGoal):
    """A goal about the things with a name that are seen."""

    __slots__ = ("name",)

    def __init__(self, name: str, description: str, **common: Any) -> None:
        super().__init__(description, **common)
        self.name = name.lower()
