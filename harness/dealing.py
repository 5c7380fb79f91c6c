"""Episodes dealt to the processes that train together; all of them get all rollouts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import chain
from typing import Any

from harness.agent import Actor
from harness.collect import EnvPool, collect
from harness.ranks import Ranks
from harness.rollout import Rollout
from harness.sampling import TaskDraw
from harness.stopping import Abandoned


async def collect_dealt(
    ranks: Ranks, pool: EnvPool, draws: Sequence[TaskDraw], actor: Actor, **options: Any
) -> list[Rollout]:
    """Return what `collect` returns for all draws; each process plays its share of the groups.

    A group's decisions have the same seeds whoever plays it. What is enough counts the groups of
    one process.

    Args:
        ranks: This process among those that play.
        pool: This process's environments.
        draws: The tasks of all processes.
        actor: Who decides.
        **options: As for `collect`.

    Raises:
        TrainingError: A process met an error; see `Ranks.agree`.
        Abandoned: A process was stopped while it played.
    """
    if ranks.size == 1:
        return await collect(pool, draws, actor, **options)
    own: list[Rollout] = []
    error: Exception | None = None
    given_up = False
    numbers = range(ranks.rank, len(draws), ranks.size)
    try:
        mine = [draws[i] for i in numbers]
        own = await collect(pool, mine, actor, numbers=numbers, **options)
    except asyncio.CancelledError:
        given_up = True
    except Exception as e:
        error = e
    if ranks.any(given_up):
        raise asyncio.CancelledError if given_up else Abandoned
    rollouts = chain.from_iterable(ranks.agree(own, error))
    return sorted(rollouts, key=lambda rollout: rollout.group)
