"""An action: a command with the objects that it is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from agentgyms.envs.scienceworld.own.objects.base import EnvObject

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.commands.context import Context
    from agentgyms.envs.scienceworld.own.objects.agent import Agent

Assignments = dict[str, EnvObject]
"""The objects of a command, by the names of their places in it, and the agent."""

UNKNOWN_CATCH: Final = "<unknown catch>"
"""The engine's answer where it runs past all of its cases."""


class Action:
    """Something that the agent does.

    Classes have the engine's names, which goals about past actions look for. A turn of the world
    follows if `TAKES_TIME`.
    """

    __slots__ = ("assignments", "name")

    TAKES_TIME: ClassVar[bool] = True

    def __init__(self, name: str, assignments: Assignments) -> None:
        self.name = name
        self.assignments = assignments

    @property
    def agent(self) -> Agent:
        """The agent who acts."""
        return self.assignments["agent"]  # type: ignore[return-value]

    def run(self, context: Context) -> str:
        """Do it, and return what the agent is told."""
        raise NotImplementedError
