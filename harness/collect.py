"""Plays many episodes at once, without lock step: each waits for its own turns only.

Infrastructure failures are caught in `run_episode` and in `harness.groups`, nowhere else. A failed
episode is played again; a group that stays incomplete is dropped whole, so that nobody mistakes a
lost server for a lost game.

Collection may stop early, once enough has ended (`Enough`). Which episodes those are depends on the
order of events: with the policy of this process and environments of this process that is a function
of the seeds, so a resumed run repeats it. Environments in threads, and models elsewhere, end in the
order of the clock, and then no two runs need be equal.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from agentgyms.errors import EnvUnavailable
from agentgyms.group import GroupEnv
from agentgyms.registration import url_from_environment
from agentgyms.remote import RemoteEnv
from harness.agent import Actor
from harness.episode import run_episode
from harness.errors import ConfigError
from harness.groups import Terms, play_group
from harness.rollout import Rollout
from harness.sampling import TaskDraw

_T = TypeVar("_T")

Progress = Callable[[Rollout], object]


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
        self._held: int | None = None  # by the servers; 0 if they do not tell, None before
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

    async def num_places(self) -> int:
        """Return how many groups may be live: as many as `max_live` and the servers have room for.

        Raises:
            ConfigError: The servers have not room for a single group.
        """
        if self._remote and self._held is None:
            self._held = await self._held_by_servers()
        held = self._held or 0
        if 0 < held < self.group_size:
            raise ConfigError(
                f"the servers of {self.env_id} hold {held} sessions, one group needs "
                f"{self.group_size}: start them with a larger --max-sessions, or start more"
            )
        return min(self.max_groups, held // self.group_size or self.max_groups)

    async def _held_by_servers(self) -> int | None:
        """Return how many environments the servers hold together; None if none answers."""

        def ask() -> int:
            with GroupEnv(self.env_id, 1, **self.kwargs) as alone:
                env = alone.envs[0]
                return env.num_places() if isinstance(env, RemoteEnv) else 0

        try:
            return await self.call(ask, blocking=True)
        except EnvUnavailable:
            return None  # who plays a group will say so, or find them there again

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
    numbers: Sequence[int] | None = None,
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
        retries: How often an episode whose environment or model fails is played again, and a group
            that does not open, or begins elsewhere when a member of it begins again.
        pause_s: Wait before that; twice as long after every further failure.
        may_lose_at_once: An episode whose very first prompt does not fit into the model's context
            is lost; otherwise that raises.
        on_finish: Called with each rollout once its group has ended.
        numbers: Of the groups, where these are some of more; None counts from 0.

    Returns:
        The rollouts; a group that kept failing is there once, as a single rollout with `error`.
        Where collection stopped early, only those that had ended.

    Raises:
        ConfigError: A number of what is enough is out of its range.
        ContextOverflow: The first prompt of an episode does not fit into the model's context.
    """
    run = partial(run_episode, actor=actor, seed=seed, may_lose_at_once=may_lose_at_once)
    enough = Enough(enough_members, enough_share, enough_turns or 0)
    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    terms = Terms(pool, run, enough, over, retries, pause_s)
    places = asyncio.Semaphore(await pool.num_places())
    left = enough.num_groups(len(draws))

    async def play_and_tell(draw: TaskDraw, index: int) -> list[Rollout]:
        nonlocal left
        async with places:
            rollouts = await play_group(terms, draw, index)
        left -= bool(rollouts and not rollouts[0].error)
        if not left and not over.done():
            over.set_result(None)
        for rollout in rollouts:
            on_finish(rollout)
        return rollouts

    groups = await asyncio.gather(*map(play_and_tell, draws, numbers or range(len(draws))))
    return [rollout for group in groups for rollout in group]
