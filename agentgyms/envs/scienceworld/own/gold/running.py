"""Runs the commands of a solution in a game."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.objects.agent import Agent
    from agentgyms.envs.scienceworld.own.objects.base import EnvObject


class Runner(Protocol):
    """What a solution needs of a game."""

    @property
    def universe(self) -> EnvObject:
        """Return the root of the object tree."""

    @property
    def agent(self) -> Agent:
        """Return the agent."""

    def step(self, command: str) -> object:
        """Run a command."""

    def is_in_ambiguous_state(self) -> bool:
        """Say whether the game asks which thing was meant."""

    def action_history(self) -> list[str]:
        """Return all commands so far."""


def run_action(action: str, runner: Runner) -> None:
    """Run a command, and choose the first meaning while the game asks for one."""
    runner.step(action)
    while runner.is_in_ambiguous_state():
        runner.step("0")


def run_action_sequence(actions: Iterable[str], runner: Runner) -> None:
    """Run commands one by one."""
    for action in actions:
        run_action(action, runner)


def action_history(runner: Runner) -> list[str]:
    """Return all commands so far."""
    return runner.action_history()


def current_agent_location(runner: Runner) -> EnvObject:
    """Return the place that the agent is in."""
    location = runner.agent.container()
    assert location is not None
    return location
