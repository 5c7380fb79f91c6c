"""A task of which there are many variations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from agentgyms.envs.scienceworld.own.goals.base import Goal
from agentgyms.envs.scienceworld.own.goals.sequence import GoalSequence
from agentgyms.envs.scienceworld.own.tasks.modifiers import TaskModifier, Value, notes

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.objects.agent import Agent
    from agentgyms.envs.scienceworld.own.objects.base import EnvObject
    from agentgyms.envs.scienceworld.own.world import World


def skip_draws(world: World, count: int) -> None:
    """Skip the draws for the things of other variations, which the engine makes at each start.

    A draw takes one step; with a bound it may take more, but none does for any existing variation.
    """
    world.random.skip(count)


class Task:
    """A task that is set up; the engine never uses `task_objects`, meant for the inventory."""

    __slots__ = ("description", "goal_sequence", "task_modifiers", "task_name", "task_objects")

    def __init__(
        self,
        task_name: str,
        description: str,
        goals: list[Goal],
        unordered: list[Goal],
        task_modifiers: list[TaskModifier],
    ) -> None:
        self.task_name = task_name
        self.description = description
        self.goal_sequence = GoalSequence(goals, unordered)
        self.task_modifiers = task_modifiers
        self.task_objects: tuple[EnvObject, ...] = ()


class Notes(dict[str, Value]):
    """The notes of a task, with the types that their keys stand for."""

    def text(self, key: str) -> str:
        """Return a note that is a text."""
        value = self[key]
        assert isinstance(value, str), key
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a note that lists texts, with commas."""
        return tuple(self.text(key).split(","))

    def number(self, key: str) -> float:
        """Return a note that is a number."""
        return float(self[key])

    def stages(self) -> Iterator[str]:
        """Go through the notes of the stages of a life, of which goals know five."""
        for at in range(1, 6):
            if f"stage{at}" in self:
                yield self.text(f"stage{at}")


class TaskParametric:
    """A kind of task in one mode; the engine draws `DRAWS` numbers for all `COUNT` variations."""

    COUNT: ClassVar[int]
    DRAWS: ClassVar[int] = 0

    def __init__(self, name: str) -> None:
        self.name = name

    def num_combinations(self) -> int:
        """Return how many variations there are."""
        return self.COUNT

    def combination(self, world: World, idx: int) -> list[TaskModifier]:
        """Make the things of a variation, in the order and with the draws of the engine."""
        raise NotImplementedError

    def setup_combination(
        self, modifiers: list[TaskModifier], idx: int, universe: EnvObject, agent: Agent
    ) -> tuple[bool, str]:
        """Change the house for a variation; return whether that worked, and the error."""
        del idx, agent
        for modifier in modifiers:
            if not modifier.run_modifier(universe):
                return (
                    False,
                    "ERROR: Error running one or more modifiers while setting up task environment.",
                )
        return (True, "")

    def setup_goals(self, world: World, modifiers: list[TaskModifier], idx: int) -> Task:
        """Return the task of a variation with its goals."""
        goals: list[Goal] = []
        unordered: list[Goal] = []
        description = self.describe(Notes(notes(modifiers)), idx, world, goals, unordered)
        return Task(self.name, description, goals, unordered, modifiers)

    def describe(
        self, given: Notes, idx: int, world: World, goals: list[Goal], unordered: list[Goal]
    ) -> str:
        """Add the goals of a variation to the lists, and return the task in words."""
        raise NotImplementedError
