"""Plays many episodes at once, without lock step: each waits for its own turns only.

Infrastructure failures are caught here and in `run_episode`, nowhere else. A failed episode is
played again; a group that stays incomplete is dropped whole, so that nobody mistakes a lost server
for a lost game.

Collection may stop early, once enough has ended (`Enough`). Which episodes those are depends on the
order of events: with the policy of this process and environments of this process that is a function
of the seeds, so a resumed run repeats it. Environments in threads, and models elsewhere, end in the
order of the clock, and then no two runs need be equal.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from agentgyms.errors import EnvUnavailable, GroupMismatch
from agentgyms.group import GroupEnv
from agentgyms.registration import url_from_environment
from harness.agent import Actor
from harness.episode import Episode, describe, run_episode
from harness.errors import ConfigError
from harness.rollout import Rollout, StopReason
from harness.sampling import TaskDraw

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

Progress = Callable[[Rollout], object]
Play = Callable[[Episode], Coroutine[Any, Any, Rollout]]


@dataclass(frozen=True, slots=True)
class Enough:
    """When collection stops before every episode has ended.

    A group has ended once `members` of its episodes have, and collection once `share` of the groups
    have. Episodes still being played are then broken off and left out; every one that has ended
    counts, also in groups that have not. No episode is broken off before its turn `turns`.

    Reference: GVPO, appendix A.1, training hyperparameters: 6 of 8 rollouts, 30 of 32 tasks, and
    only after 30 steps of rollout. The paper also says "90% of the total rollouts"; with 6 of 8
    that can only mean tasks, which its concrete conditions count. It is silent about groups under
    way at the end; here what has ended of them is kept, and a group without any is not there.

    Attributes:
        members: Episodes of a group, at least 1, or None for all of them.
        share: Of the groups, in (0, 1], or None for all of them.
        turns: 0 or more.

    Raises:
        ConfigError: A number is out of its range.
    """

    members: int | None = None
    share: float | None = None
    turns: int = 0

    def __post_init__(self) -> None:
        """Check the numbers."""
        if self.members is not None and self.members < 1:
            raise ConfigError(f"enough_members must be at least 1, got {self.members}")
        if self.share is not None and not 0 < self.share <= 1:
            raise ConfigError(f"enough_share must be in (0, 1], got {self.share}")
        if self.turns < 0:
            raise ConfigError(f"enough_turns must be at least 0, got {self.turns}")

    def num_members(self, group_size: int) -> int:
        """Return how many episodes of a group have to end."""
        return group_size if self.members is None else min(self.members, group_size)

    def num_groups(self, groups: int) -> int:
        """Return how many of the groups have to end."""
        return groups if self.share is None else math.ceil(self.share * groups - 1e-9)


class EnvPool:
    """Groups of environments, made when needed and used again from one training step to the next.

    Environments that wait for something outside this process, such as a server, are made, used and
    closed in threads, one for each that may be live; all others on the event loop itself.

    Args:
        env_id: A registered id.
        group_size: Rollouts per task.
        max_live: Most environments at once, at least one group's.
        record: Keep each rollout's `recording`.
        **kwargs: As for `gymnasium.make`.

    Attributes:
        parties: Who else has a part in the episodes; empty before an environment was made.
    """

    def __init__(
        self, env_id: str, group_size: int, max_live: int, *, record: bool = False, **kwargs: Any
    ) -> None:
        """Make no environment yet."""
        self.record, self.parties = record, dict[str, str]()
        self.env_id, self.group_size, self.kwargs = env_id, group_size, kwargs
        self.max_groups = max(1, max_live // group_size)
        self._free: list[GroupEnv] = []
        self._threads = ThreadPoolExecutor(self.max_groups * group_size, "environment")
        self._remote = bool(kwargs.get("url") or url_from_environment(env_id))

    def take(self) -> GroupEnv:
        """Return a group nobody uses."""
        if self._free:
            return self._free.pop()
        group = GroupEnv(self.env_id, self.group_size, **self.kwargs)
        self.parties = dict(group.envs[0].parties)
        return group

    async def take_soon(self) -> GroupEnv:
        """Return a group nobody uses, while other episodes go on."""
        return await self.call(self.take, blocking=self._remote and not self._free)

    def give_back(self, group: GroupEnv) -> None:
        """Let others use the group."""
        self._free.append(group)

    async def call(
        self, work: Callable[[], _T], *, blocking: bool, interrupt: Callable[[], None] | None = None
    ) -> _T:
        """Return `work()`, done in a thread if it is `blocking`.

        Cancelled, it ends only when the thread has: whoever cancels may then use the environment.
        `interrupt` lets it end soon.
        """
        if not blocking:
            return work()
        thread = asyncio.get_running_loop().run_in_executor(self._threads, work)
        try:
            return await asyncio.shield(thread)
        except asyncio.CancelledError:
            if interrupt is not None:
                interrupt()
            await asyncio.wait([thread])
            if not thread.cancelled():
                thread.exception()  # nobody is there to mind it
            raise

    def close(self) -> None:
        """Close all environments that nobody uses."""
        for group in self._free:
            group.close()
        self._free.clear()
        self._threads.shutdown(wait=False, cancel_futures=True)


async def collect(
    pool: EnvPool,
    draws: Sequence[TaskDraw],
    actor: Actor,
    *,
    seed: int,
    enough_members: int | None = None,
    enough_share: float | None = None,
    enough_turns: int | None = None,
    retries: int = 2,
    pause_s: float = 1.0,
    may_lose_at_once: bool = False,
    on_finish: Progress = lambda _: None,
) -> list[Rollout]:
    """Return the rollouts of every task, `pool.group_size` each, in the order of the tasks.

    Args:
        pool: Where the environments come from.
        draws: The tasks; group i plays `draws[i]`.
        actor: Who decides.
        seed: All decisions' seeds derive from it, the group, the member and the turn.
        enough_members: A group ends with so many of its episodes; None waits for all.
        enough_share: Collection ends with this share of its groups; None waits for all.
        enough_turns: No episode is broken off for that before so many turns; see `Enough`. None
            is 0.
        retries: How often a group whose environments fail is played again.
        pause_s: Wait before it is played again; twice as long after every further failure.
        may_lose_at_once: An episode whose very first prompt does not fit into the model's context
            is lost; otherwise that raises.
        on_finish: Called with each rollout once its group has ended.

    Returns:
        The rollouts; a group that kept failing is there once, as a single rollout with `error`.
        Where collection stopped early, only those that had ended.

    Raises:
        ConfigError: A number of what is enough is out of its range.
        ContextOverflow: The first prompt of an episode does not fit into the model's context.
    """
    run = partial(run_episode, actor=actor, seed=seed, may_lose_at_once=may_lose_at_once)
    enough = Enough(enough_members, enough_share, enough_turns or 0)
    places = asyncio.Semaphore(pool.max_groups)
    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    left = enough.num_groups(len(draws))

    async def play(draw: TaskDraw, index: int) -> list[Rollout]:
        async with places:
            for attempt in range(retries + 1):
                if over.done():
                    return []
                rollouts = await _play_group(pool, draw, index, run, enough, over)
                if not rollouts or not rollouts[0].error:
                    break
                _log.warning("%s, attempt %d: %s", draw.task_id, attempt + 1, rollouts[0].error)
                if attempt < retries:
                    await asyncio.sleep(pause_s * 2**attempt)
            return rollouts

    async def play_and_tell(draw: TaskDraw, index: int) -> list[Rollout]:
        nonlocal left
        rollouts = await play(draw, index)
        left -= bool(rollouts and not rollouts[0].error)
        if not left and not over.done():
            over.set_result(None)
        for rollout in rollouts:
            on_finish(rollout)
        return rollouts

    groups = await asyncio.gather(*(play_and_tell(d, i) for i, d in enumerate(draws)))
    return [rollout for group in groups for rollout in group]


async def _play_group(
    pool: EnvPool,
    draw: TaskDraw,
    index: int,
    run: Play,
    enough: Enough,
    over: asyncio.Future[None],
) -> list[Rollout]:
    """Return the rollouts of a group, or a single one with the error that one of them met."""
    group, usable = None, False
    try:
        group = await pool.take_soon()
        episodes = await _open_group(pool, group, draw, index)
        rollouts = await _play_members(episodes, run, enough, over)
        error = next((rollout.error for rollout in rollouts if rollout.error), "")
        usable = not error
    except (EnvUnavailable, GroupMismatch) as e:
        error = describe(e)
    finally:
        if usable and group is not None:
            pool.give_back(group)
        elif group is not None:
            await pool.call(group.close, blocking=group.envs[0].blocking)
    return rollouts if usable else [Rollout(draw.task_id, "", index, 0, draw.seed, error=error)]


async def _play_members(
    episodes: Sequence[Episode],
    run: Play,
    enough: Enough,
    over: asyncio.Future[None],
) -> list[Rollout]:
    """Return the rollouts of a group that ended; when it returns, no environment is in use."""
    tasks = [asyncio.ensure_future(run(episode)) for episode in episodes]
    wanted = enough.num_members(len(tasks))
    try:
        while True:
            ended = [task for task in tasks if task.done()]
            failed = any(task.exception() or task.result().error for task in ended)
            if failed or len(ended) >= wanted or over.done():
                break
            awaited: list[asyncio.Future[Any]] = [over, *(t for t in tasks if not t.done())]
            await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
        if not failed:
            await _finish_turns(episodes, tasks, enough.turns)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    rollouts = [task.result() for task in tasks if not task.cancelled()]
    if not failed:  # what befell an episode after enough had ended is of no interest
        rollouts = [rollout for rollout in rollouts if not rollout.error]
    return [rollout for rollout in rollouts if rollout.stop_reason is not StopReason.STOPPED]


async def _finish_turns(
    episodes: Sequence[Episode], tasks: Sequence[asyncio.Task[Rollout]], turns: int
) -> None:
    """Let the episodes go on that have not taken so many turns yet."""
    early = [
        (episode, task)
        for episode, task in zip(episodes, tasks, strict=True)
        if not task.done() and len(episode.rollout.turns) < turns
    ]
    for episode, _ in early:
        episode.stop_at = turns
    if early:
        await asyncio.wait([task for _, task in early])


async def _open_group(pool: EnvPool, group: GroupEnv, draw: TaskDraw, index: int) -> list[Episode]:
    observations, infos = await pool.call(
        lambda: group.reset(seed=draw.seed, options={"task_id": draw.task_id}),
        blocking=group.envs[0].blocking,
        interrupt=group.envs[0].interrupt,
    )
    return [
        Episode(pool, env, draw, index, member, observation, info)
        for member, (env, observation, info) in enumerate(
            zip(group.envs, observations, infos, strict=True)
        )
    ]
