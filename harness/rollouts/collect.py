"""Collects rollouts of many episodes that run at once, without waiting for each other's turns.

Infrastructure failures are caught in `run_episode` and in `harness.rollouts.groups`, nowhere else.
A failed episode is played again. A group that stays incomplete is dropped, so that a lost server
never counts as a failed episode.

Collection may stop early, once enough episodes have ended (`CollectOptions`). Which episodes those
are depends on the order of events. If the policy and the environments run in this process, the
order is a function of the seeds, so a resumed run repeats it. If environments run in threads or
models on other machines, the order depends on time, and two runs may differ.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from harness.rollouts.collect_options import CollectOptions
from harness.rollouts.env_pool import EnvPool
from harness.rollouts.groups import GroupRunner, PlayEpisode
from harness.rollouts.views import Actor
from harness.types.rollout import Rollout
from harness.types.task_draws import TaskDraw


async def collect(
    pool: EnvPool,
    draws: Sequence[TaskDraw],
    actor: Actor,
    *,
    seed: int,
    options: CollectOptions = CollectOptions(),  # noqa: B008 (frozen)
    group_indices: Sequence[int] | None = None,
) -> list[Rollout]:
    """Return the rollouts of every task, `pool.group_size` each, in the order of the tasks.

    Args:
        pool: Gives the environments.
        draws: The tasks; group i plays `draws[i]`.
        actor: Decides in every episode.
        seed: Each decision's seed derives from it, the group's index, the member and the turn.
        options: When collection stops, and how failures are retried.
        group_indices: Index of each task's group, if `draws` is a part of a larger collection;
            None counts from 0.

    Returns:
        The rollouts. A group that kept failing has a single rollout with `error`. If collection
        stopped early, only the episodes that had ended.

    Raises:
        ContextOverflow: The first prompt of an episode does not fit into the model's context.
    """
    play = partial(
        options.run,
        actor=actor,
        seed=seed,
        allow_initial_overflow=options.allow_initial_overflow,
    )
    return await collect_episodes(pool, draws, play, options=options, group_indices=group_indices)


async def collect_episodes(
    pool: EnvPool,
    draws: Sequence[TaskDraw],
    play: PlayEpisode,
    *,
    options: CollectOptions = CollectOptions(),  # noqa: B008 (frozen)
    group_indices: Sequence[int] | None = None,
) -> list[Rollout]:
    """Return the rollouts of every task, as `collect` does, each played by `play`."""
    stopped: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    slots = asyncio.Semaphore(await pool.max_open_groups())
    remaining = options.num_groups(len(draws))

    async def run_group(draw: TaskDraw, index: int) -> list[Rollout]:
        nonlocal remaining
        async with slots:
            rollouts = await GroupRunner(pool, draw, index, play, options, stopped).run()
        remaining -= bool(rollouts and not rollouts[0].error)
        if not remaining and not stopped.done():
            stopped.set_result(None)
        for rollout in rollouts:
            options.on_finish(rollout)
        return rollouts

    indices = range(len(draws)) if group_indices is None else group_indices
    groups = await asyncio.gather(*map(run_group, draws, indices))
    return [rollout for group in groups for rollout in group]
