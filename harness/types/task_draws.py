"""Sampling of tasks: a function of a seed and a step, so that resuming needs no saved state."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from agentgyms.core.randomness import seeds_of

_EXTRA_ROUNDS: Final = 0xA6A1
"""Random stream of the tasks that a step draws in its extra rounds."""


@dataclass(frozen=True, slots=True)
class TaskDraw:
    """One task to play, with the seed of its episode."""

    task_id: str
    seed: int


class TaskSampler:
    """Draws tasks in shuffled passes over a split, each task once per pass, by the run's seed."""

    def __init__(self, tasks: Sequence[str], seed: int) -> None:
        if not tasks:
            raise ValueError("a sampler needs at least one task, got none")
        self._tasks, self._seed = tasks, seed

    def draw(self, step: int, count: int, round_index: int = 0) -> list[TaskDraw]:
        """Return `count` tasks of a round of a training step.

        Round 0 takes the next tasks of the pass over the split. Later rounds take tasks from a
        shuffle of this step alone: tasks that round 0 did not draw come first, and no task repeats
        before all were drawn. So the draws of a step do not depend on the rounds of other steps.

        Args:
            step: The training step, from 0. Equal arguments give equal draws.
            count: Number of tasks.
            round_index: The round, from 0.
        """
        first = step * count
        own = [self.at(position) for position in range(first, first + count)]
        if not round_index:
            return own
        order = self._extra_order(step, {draw.task_id for draw in own})
        positions = range((round_index - 1) * count, round_index * count)
        return [
            TaskDraw(
                self._tasks[order[position % len(order)]],
                seed_of(self._seed, _EXTRA_ROUNDS, step, position),
            )
            for position in positions
        ]

    def at(self, position: int) -> TaskDraw:
        """Return the task at a position, from 0, of the passes over the split."""
        epoch, index = divmod(position, len(self._tasks))
        order = np.random.default_rng([self._seed, epoch]).permutation(len(self._tasks))
        return TaskDraw(self._tasks[int(order[index])], seed_of(self._seed, position))

    def _extra_order(self, step: int, own: Collection[str]) -> list[int]:
        """Return all tasks' indices in the step's shuffle, the `own` tasks of round 0 last."""
        rng = np.random.default_rng([self._seed, step, _EXTRA_ROUNDS])
        shuffled = rng.permutation(len(self._tasks)).tolist()
        return sorted(shuffled, key=lambda index: self._tasks[index] in own)


def seed_of(*parts: int) -> int:
    """Return a 63-bit seed that depends on the non-negative `parts` and on their number."""
    low, high = seeds_of(*parts, len(parts)).generate_state(2).tolist()
    seed: int = (high << 31) ^ low
    return seed
