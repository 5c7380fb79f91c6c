"""Which tasks come next, as a function of a seed and a step: resuming needs no saved state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


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

    def draw(self, step: int, count: int) -> list[TaskDraw]:
        """Return the `count` tasks of training step `step` (from 0)."""
        first = step * count
        return [self._at(position) for position in range(first, first + count)]

    def _at(self, position: int) -> TaskDraw:
        epoch, index = divmod(position, len(self._tasks))
        order = np.random.default_rng([self._seed, epoch]).permutation(len(self._tasks))
        return TaskDraw(self._tasks[int(order[index])], seed_of(self._seed, position))


def seed_of(*parts: int) -> int:
    """Return a 63-bit seed that depends on the non-negative `parts` and on how many there are."""
    low, high = np.random.SeedSequence([*parts, len(parts)]).generate_state(2)
    return (int(high) << 31) ^ int(low)
