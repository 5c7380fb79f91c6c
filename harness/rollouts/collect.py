"""Collects rollouts of many episodes that run at once, without waiting for each other's turns.

Infrastructure failures are caught in `run_episode` and in `harness.rollouts.groups`, nowhere else.
A failed episode is played again. A group that stays incomplete is dropped, so that a lost server
never counts as a failed episode.

Collection may stop early, once enough episodes have ended (`CollectOptions`). Which episodes those
are depends on the order of events. If the policy and the environments run in this process alone,
the order is a function of the seeds, so a resumed run repeats it. If environments run in threads,
models on other machines or other processes collect too, the order depends on time, and two runs
may differ.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Final, Protocol

from harness.distributed.process_group import ProcessGroup
from harness.distributed.shared_count import SharedCount
from harness.distributed.signals import Abandoned
from harness.rollouts.env_pool import EnvPool
from harness.rollouts.groups import CollectOptions, GroupRunner, PlayEpisode
from harness.rollouts.views import Actor
from harness.types.rollout import Rollout
from harness.types.task_draws import TaskDraw

_LOOK_EVERY_S: Final = 0.1
"""Seconds between two looks at the count of all processes."""


class Count(Protocol):
    """A number that the processes of a collection share."""

    def add(self) -> int:
        """Add 1 and return the number."""
        ...

    def value(self) -> int:
        """Return the number."""
        ...


@dataclass(frozen=True, slots=True)
class SharedEnd:
    """The end of a collection that several processes share: `enough` of their groups have ended."""

    ended: Count  # groups that have ended in all of the processes
    enough: int  # the number at which all processes stop


async def collect(
    pool: EnvPool,
    draws: Sequence[TaskDraw],  # the tasks; group i plays `draws[i]`
    actor: Actor,
    *,
    seed: int,  # the seed of all decisions, with the group's index, the member and the turn
    options: CollectOptions = CollectOptions(),  # noqa: B008 (frozen)
    # The index of each task's group, if `draws` is a part of a larger collection; None counts from
    # 0.
    group_indices: Sequence[int] | None = None,
    # The end of the larger collection, in place of `options.enough_share`.
    shared_end: SharedEnd | None = None,
) -> list[Rollout]:
    """Return the rollouts of every task, `pool.group_size` each, in the order of the tasks.

    A group that kept failing has a single rollout with `error`. If collection stopped early, only
    the episodes that had ended are returned. Raises `ContextOverflow` if the first prompt of an
    episode does not fit into the model's context.
    """
    play = partial(
        options.run,
        actor=actor,
        seed=seed,
        allow_initial_overflow=options.allow_initial_overflow,
    )
    return await collect_episodes(
        pool, draws, play, options=options, group_indices=group_indices, shared_end=shared_end
    )


async def collect_episodes(
    pool: EnvPool,
    draws: Sequence[TaskDraw],
    play: PlayEpisode,
    *,
    options: CollectOptions = CollectOptions(),  # noqa: B008 (frozen)
    group_indices: Sequence[int] | None = None,
    shared_end: SharedEnd | None = None,
) -> list[Rollout]:
    """Return the rollouts of every task, as `collect` does, each played by `play`."""
    indices = range(len(draws)) if group_indices is None else group_indices
    end = shared_end or SharedEnd(_LocalCount(), options.num_groups(len(draws)))
    slots = asyncio.Semaphore(await pool.max_open_groups())
    stopped: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run_group(draw: TaskDraw, index: int) -> list[Rollout]:
        async with slots:
            rollouts = await GroupRunner(pool, draw, index, play, options, stopped).run()
        # A lost group does not count: the others must not stop because a server failed.
        is_whole = bool(rollouts) and not rollouts[0].error
        if is_whole and end.ended.add() >= end.enough:
            _stop(stopped)
        for rollout in rollouts:
            options.on_finish(rollout)
        return rollouts

    watcher = None if shared_end is None else asyncio.ensure_future(_watch(shared_end, stopped))
    try:
        groups = await asyncio.gather(*map(run_group, draws, indices))
    finally:
        if watcher is not None:
            watcher.cancel()
    return [rollout for group in groups for rollout in group]


def _stop(stopped: asyncio.Future[None]) -> None:
    if not stopped.done():
        stopped.set_result(None)


async def _watch(end: SharedEnd, stopped: asyncio.Future[None]) -> None:
    """Stop soon after other processes have ended the collection."""
    # If a process is gone, counting fails; the next collective reports that error.
    with contextlib.suppress(RuntimeError):
        while end.ended.value() < end.enough:
            await asyncio.sleep(_LOOK_EVERY_S)
        _stop(stopped)


class _LocalCount:
    def __init__(self) -> None:
        self._number = 0

    def add(self) -> int:
        self._number += 1
        return self._number

    def value(self) -> int:
        return self._number


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
