"""Worlds of the bias laboratory: tasks that are enumerated, and a policy of a table on each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import gymnasium as gym
import numpy as np

from agentgyms.exact import Dynamics, Model, Transition, enumerate_states
from harness.types.arrays import Floats
from harness.types.errors import ConfigError
from harness.types.hyperparameters import unknown

Objective = Literal["success", "environment"]
"""The return whose gradient is sought: success, or rewards of turns and success together."""

_SKILL: Final = 2.0  # the logit of an optimal action above the others
_SPREAD: Final = 0.5  # standard deviation of all logits


@dataclass(frozen=True, eq=False)
class TabularTask:
    """An enumerated task, and a softmax policy with a logit for each state and action."""

    model: Model
    logits: Floats  # [S, A]; those of actions that a state does not have are not read

    @property
    def policy(self) -> Floats:
        """The probabilities of the actions; 0 for those that a state does not have. [S, A]."""
        legal = self.model.legal
        shown = np.where(legal, self.logits, -np.inf)
        top = np.where(legal.any(axis=1), shown.max(axis=1), 0.0)
        weight = np.where(legal, np.exp(shown - top[:, None]), 0.0)
        total = weight.sum(axis=1, keepdims=True)
        return weight / np.where(total > 0, total, 1.0)

    def value(self, objective: Objective = "success") -> float:
        """Return the exact expected return of an episode."""
        return float(self.model.evaluate(self.policy, objective).value[0, 0])

    def gradient(self, objective: Objective = "success") -> Floats:
        """Return the exact gradient of `value` in the logits. Shape [S, A]."""
        found: Floats = self.model.gradient(self.policy, objective).sum(axis=0)
        return found


@dataclass(frozen=True, eq=False)
class World:
    """Tasks that are trained together; their states share no logits."""

    name: str
    tasks: tuple[TabularTask, ...]

    def gradient(self, objective: Objective = "success") -> Floats:
        """Return the exact gradient of the tasks' mean value, all logits in a row. Shape [D]."""
        parts = [task.gradient(objective).ravel() for task in self.tasks]
        return np.concatenate(parts) / len(parts)


class Chain:
    """Work raises a level by chance and may lose it; the level at the end is the chance to succeed.

    A `work` adds 1 to the level with probability `rise`, and with probability 0.15 loses it all.
    An episode has at most `length` turns. The other action is `stop`, which ends the episode, if
    the policy decides about its end, and else `wait`, which changes nothing. A turn that is not the
    last one is rewarded with the change of the level over `length`, the last one with 1 for
    success. Keys name the level alone, as those of environments do not count turns.
    """

    def __init__(self, length: int, rise: float, *, stops: bool) -> None:
        self.max_turns = self.turns_left = length
        self.position = (0, 0)  # turns taken, level
        self._rise, self._other = rise, "stop" if stops else "wait"

    def actions_in(self, state: tuple[int, int]) -> Sequence[str]:
        """Return both actions."""
        return ("work", self._other) if state[0] < self.max_turns else ()

    def transitions(self, state: tuple[int, int], action: str) -> Sequence[Transition]:
        """Return what an action may lead to."""
        turn, level = state
        chances = [(1.0, level)]
        if action == "work":
            left = 1 - self._rise - _LOSS
            chances = [(self._rise, level + 1), (_LOSS, 0), (left, level)]
        if action == "stop" or turn + 1 == self.max_turns:
            return [one for chance, after in chances for one in self._ended(chance, after)]
        return [
            Transition(chance, (turn + 1, after), reward=(after - level) / self.max_turns)
            for chance, after in chances
        ]

    def _ended(self, chance: float, level: int) -> tuple[Transition, Transition]:
        share = (level + 0.5) / (self.max_turns + 1)
        end = (self.max_turns, level)  # nothing can be done there
        return (
            Transition(chance * share, end, 1.0, True, True, 1.0),
            Transition(chance * (1 - share), end, 0.0, True),
        )

    def key_of(self, state: tuple[int, int]) -> str:
        """Return the level as a key."""
        return f"level {state[1]}"


_LOSS: Final = 0.15


def _chains(length: int, stops: bool) -> list[Dynamics]:
    return [Chain(length, rise, stops=stops) for rise in (0.75, 0.3)]


def _played(env_id: str, length: int, tasks: Sequence[str]) -> list[Any]:
    """Return environments after the reset of a task each, with episodes of so many turns."""
    made = []
    for task in tasks:
        env = gym.make(env_id, max_turns=length)
        env.reset(seed=0, options={"task_id": task})
        made.append(env)
    return made


def _corridors(length: int) -> list[Any]:
    return _played("agentgyms/Corridor-v0", length, ["train/free-000", "train/locked-001"])


def _lakes(length: int) -> list[Any]:
    return _played("agentgyms/FrozenLake-v0", length, ["train/4x4-0000", "train/4x4-0001"])


_MAKERS: Final[dict[str, tuple[Callable[[int], list[Any]], int]]] = {
    "chain-stop": (lambda length: _chains(length, stops=True), 6),
    "chain-fixed": (lambda length: _chains(length, stops=False), 6),
    "corridor": (_corridors, 12),
    "frozen-lake": (_lakes, 12),
}
NAMES: Final = tuple(_MAKERS)
LENGTHS: Final = {name: length for name, (_, length) in _MAKERS.items()}
"""The most turns of an episode of each world, unless another number is asked for."""


def make(name: str, length: int = 0, seed: int = 0) -> World:
    """Return a world of at most `length` turns (0: as in `LENGTHS`), its policy drawn by the seed.

    It prefers optimal actions. Raises `ConfigError` for an unknown name or fewer than 2 turns.
    """
    if name not in _MAKERS:
        raise ConfigError(unknown("world", name, NAMES))
    length = length or LENGTHS[name]
    if length < 2:
        raise ConfigError(f"episodes need at least 2 turns, got {length}")
    rng = np.random.default_rng(seed)
    tasks = []
    for one in _MAKERS[name][0](length):
        model = enumerate_states(one)
        best = model.optimal("success").policy.mean(axis=0)
        logits = _SKILL * best + _SPREAD * rng.standard_normal(best.shape)
        tasks.append(TabularTask(model, logits))
    return World(name, tuple(tasks))
