"""The state of a game, which keys and forks read."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.commands.context import Context
    from agentgyms.envs.scienceworld.own.commands.parser import InputParser
    from agentgyms.envs.scienceworld.own.objects.agent import Agent
    from agentgyms.envs.scienceworld.own.objects.base import EnvObject
    from agentgyms.envs.scienceworld.own.tasks.maker import TaskMaker1
    from agentgyms.envs.scienceworld.own.tasks.parametric import Task
    from agentgyms.envs.scienceworld.own.world import World


class GameState:
    """Everything that a game consists of; `Game` adds what one does with it.

    `score` is from 0 to 1, or -1 for a failed task; 0 before the first step. `moves` are the turns
    of the world that have passed.
    """

    world: World
    universe: EnvObject
    agent: Agent
    score: float
    completed: bool
    moves: int
    _context: Context
    _parser: InputParser
    _maker: TaskMaker1
    _task: Task
    _error: str
    _history: list[str]
