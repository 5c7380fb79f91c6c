"""Distributed collection: each process plays its share of the groups and gets all rollouts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import chain

from harness.distributed.process_group import ProcessGroup
from harness.distributed.shared_count import SharedCount
from harness.distributed.signals import Abandoned
from harness.rollouts.collect import SharedEnd, collect
from harness.rollouts.collect_options import CollectOptions
from harness.rollouts.env_pool import EnvPool
from harness.rollouts.views import Actor
from harness.types.rollout import Rollout
from harness.types.task_draws import TaskDraw


async def collect_distributed(
    processes: ProcessGroup,
    pool: EnvPool,
    draws: Sequence[TaskDraw],
    actor: Actor,
    *,
    seed: int,
    options: CollectOptions = CollectOptions(),  # noqa: B008 (frozen)
) -> list[Rollout]:
    """Return the rollouts of all draws, as `collect` does, in each process.

    Process r of n plays the groups r, r + n, r + 2n and so on. A group's decisions have the same
    seeds in every process. `options.enough_share` counts the groups of all processes: once enough
    have ended, each process stops the episodes that it still plays.

    Raises `TrainingError` if a process met an error; see `ProcessGroup.agree`. Raises `Abandoned`
    if another process was stopped while it collected.
    """
    if processes.size == 1:
        return await collect(pool, draws, actor, seed=seed, options=options)
    own: list[Rollout] = []
    error: Exception | None = None
    cancelled = False
    indices = range(processes.rank, len(draws), processes.size)
    enough = options.num_groups(len(draws))
    # If all groups must end, nobody stops early and there is nothing to count.
    end = SharedEnd(SharedCount(), enough) if enough < len(draws) else None
    try:
        own = await collect(
            pool,
            [draws[i] for i in indices],
            actor,
            seed=seed,
            options=options,
            group_indices=indices,
            shared_end=end,
        )
    except asyncio.CancelledError:
        cancelled = True
    except Exception as e:
        error = e
    if processes.any(cancelled):
        raise asyncio.CancelledError if cancelled else Abandoned
    rollouts = chain.from_iterable(processes.gather_or_raise(own, error))
    return sorted(rollouts, key=lambda rollout: rollout.group)
