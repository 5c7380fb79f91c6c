"""The agent and its inventory."""

from __future__ import annotations

from typing import Protocol

from agentgyms.envs.scienceworld.own.life.fruits import Orange
from agentgyms.envs.scienceworld.own.objects.base import FIXED, MODE_CURSORY_DETAIL, EnvObject
from agentgyms.envs.scienceworld.own.objects.containers import Container
from agentgyms.envs.scienceworld.own.properties.container import IsOpenUnclosableContainer
from agentgyms.envs.scienceworld.own.sets import FrozenSet
from agentgyms.envs.scienceworld.own.world import World


class Deed(Protocol):
    """An action, as the agent remembers it.

    `assignments` has its objects by the names of their places in the command.
    """

    assignments: dict[str, EnvObject]


class Agent(EnvObject):
    """The one who acts, with an orange at first; `waiting_counter` has the ticks still to wait."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.name = "agent"
        self.prop_moveable = FIXED
        self.waiting_counter = 0
        self.inventory = InventoryContainer(world)
        self.add_object(self.inventory)
        self.task_description_str = ""
        self._action_history: list[Deed] = []
        self.inventory.add_object(Orange(world))

    def inventory_container(self) -> EnvObject:
        """Return the container of what the agent carries."""
        return self.inventory

    def set_wait(self, num_iterations: int) -> None:
        """Make the agent wait."""
        self.waiting_counter = num_iterations

    def decrement_wait(self) -> None:
        """Count one tick of the waiting."""
        if self.waiting_counter > 0:
            self.waiting_counter -= 1

    def is_waiting(self) -> bool:
        """Return whether the agent waits."""
        return self.waiting_counter > 0

    def task_description(self) -> str:
        """Return the task in words."""
        return self.task_description_str

    def set_task_description(self, task_str: str) -> None:
        """Set the task in words."""
        self.task_description_str = task_str

    def add_action_to_history(self, action: Deed) -> None:
        """Append the action to those done."""
        self._action_history.append(action)

    def action_history(self) -> list[Deed]:
        """Return the actions done."""
        return list(self._action_history)

    def action_history_since(self, step: int) -> list[Deed]:
        """Return the actions done from the step on."""
        return self._action_history[max(step, 0) :]

    def action_history_size(self) -> int:
        """Return the number of actions done."""
        return len(self._action_history)

    def referents(self) -> FrozenSet[str]:
        """Return the names that a command may use."""
        return FrozenSet.of("agent", "self")

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Describe the agent."""
        return "the agent"


class InventoryContainer(Container):
    """The container of what the agent carries."""

    NAME = "inventory"
    CONTAINER = IsOpenUnclosableContainer

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.prop_moveable = FIXED

    def referents(self) -> FrozenSet[str]:
        """Return the names that a command may use."""
        return FrozenSet.of("inventory", self.name)
