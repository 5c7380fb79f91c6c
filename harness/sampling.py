"""Which tasks come next, as a function of a seed and a step: resuming needs no saved state."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from agentgyms.randomness import seeds_of

_AGAIN: Final = 0xA6A1
"""Stream of random numbers for tasks that a step draws beyond its own."""


@dataclass(frozen=True, slots=True)
class TaskDraw:
    """One task to play, with the seed of its episode."""

    task_id: str
    seed: int


class TaskSampler:
    """Walks through shuffled passes over a split: each task once before any comes twice.

    Args:
        tasks: Task ids in their fixed order.
        seed: Seed of the run; each pass is shuffled with a generator of its own.
    """

    def __init__(self, tasks: Sequence[str], seed: int) -> None:
        """Raise `ValueError` if there is no task."""
        if not tasks:
            raise ValueError("a sampler needs at least one task, got none")
        self._tasks, self._seed = tasks, seed

    def draw(self, step: int, count: int, again: int = 0) -> list[TaskDraw]:
        """Return the `count` tasks of training step `step` (from 0).

        A step that needs more tasks than its own draws again. Those tasks come from a shuffle of
        the step's own: the other tasks first, each once before any comes twice. What any step draws
        depends on no other step, nor on how often others drew again.

        Args:
            step: From 0; each call with the same numbers returns the same.
            count: How many tasks.
            again: 0 draws the step's own tasks, 1 more, 2 yet more, and so on.
        """
        first = step * count
        own = [self._at(position) for position in range(first, first + count)]
        if not again:
            return own
        order = self._others(step, {draw.task_id for draw in own})
        positions = range((again - 1) * count, again * count)
        return [
            TaskDraw(
                self._tasks[order[position % len(order)]],
                seed_of(self._seed, _AGAIN, step, position),
            )
            for position in positions
        ]

    def _at(self, position: int) -> TaskDraw:
        epoch, index = divmod(position, len(self._tasks))
        order = np.random.default_rng([self._seed, epoch]).permutation(len(self._tasks))
        return TaskDraw(self._tasks[int(order[index])], seed_of(self._seed, position))

    def _others(self, step: int, own: Collection[str]) -> list[int]:
        """Return all tasks' indices in the step's shuffle, those of its own tasks last."""
        shuffled = np.random.default_rng([self._seed, step, _AGAIN]).permutation(len(self._tasks))
        return sorted(shuffled.tolist(), key=lambda index: self._tasks[index] in own)


def seed_of(*parts: int) -> int:
    """Return a 63-bit seed that depends on the non-negative `parts` and on how many there are."""
    low, high = seeds_of(*parts, len(parts)).generate_state(2).tolist()
    seed: int = (high << 31) ^ low
    return seed
