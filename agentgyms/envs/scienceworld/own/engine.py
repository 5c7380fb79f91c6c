"""Our own engine behind the interface of the real one's, without a JVM."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from agentgyms.envs.scienceworld.engine import Answer, Game
from agentgyms.envs.scienceworld.own.game import Game as World
from agentgyms.envs.scienceworld.own.keys import digest

_GOLD_PATHS: Final = 64


class Engine:
    """Plays one game at a time, in this process."""

    def __init__(self) -> None:
        self._world: World | None = None

    def load(self, game: Game, *, listing: bool) -> Answer:
        """Start a game; `listing` asks for the valid actions in every state."""
        self._world = World(*game)
        self._listing = listing
        # As the package's own reset has it; it takes no time.
        return self._answer(self._world.step("look around"))

    def step(self, action: str) -> Answer:
        """Take one turn."""
        assert self._world is not None, "load comes before step"
        return self._answer(self._world.step(action))

    def copy_game(self, other: Engine) -> None:
        """Play on a copy of another engine's game."""
        assert other._world is not None, "load comes before copy_game"
        self._world, self._listing = other._world.fork(), other._listing

    def close(self) -> None:
        """Forget the game."""
        self._world = None

    def _answer(self, observation: str) -> Answer:
        world = self._world
        assert world is not None
        return Answer(
            observation=observation,
            admissible=world.valid_actions() if self._listing else [],
            score=world.score,
            completed=world.completed,
            moves=world.moves,
            goals=world.goal_progress(),
            task=world.task_description(),
            key=digest(world),
        )


@lru_cache(maxsize=_GOLD_PATHS)
def gold_path(game: Game) -> tuple[str, ...]:
    """Return the engine's solution of a game, which another game finds by playing to the end."""
    path, _ = World(*game).gold_actions()
    return tuple(path)
