"""Runs one group: opens it in one state, plays its members, restarts the members that failed.

A failed episode is played again with its seeds, on a fresh environment that must show the group's
first state, so it equals one that never failed. If the state differs, the whole group is played
again.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from agentgyms.core.env import Observation, TextEnv
from agentgyms.core.errors import EnvUnavailable, GroupMismatch
from agentgyms.registration import GroupEnv
from harness.rollouts.branches import Branches, SiblingRunner
from harness.rollouts.env_pool import EnvPool
from harness.rollouts.episode import Episode, Point, describe, run_episode
from harness.rollouts.views import Actor
from harness.types.errors import ConfigError
from harness.types.rollout import OnFinish, Rollout, StopReason
from harness.types.task_draws import TaskDraw


class RunEpisode(Protocol):
    """Plays one episode with an actor, as `run_episode` does."""

    async def __call__(
        self, episode: Episode, actor: Actor, *, seed: int, allow_initial_overflow: bool = False
    ) -> Rollout:
        """Return the rollout."""
        ...


def _ignore(_: Rollout) -> None:
    """Do nothing with a finished rollout."""


@dataclass(frozen=True, slots=True)
class CollectOptions:
    """How rollouts are collected.

    A group has ended once `enough_members` of its episodes have, collection once `enough_share` of
    its groups have. Episodes that still run are then stopped and dropped, but never before their
    turn `enough_turns`. Every ended episode is kept, also in groups that have not ended.

    Reference: GVPO, appendix A.1: 6 of 8 rollouts, 30 of 32 tasks, and only after 30 steps of
    rollout. Its "90% of the total rollouts" can only mean tasks, which its concrete conditions
    count. It does not say what happens to incomplete groups; here their finished episodes are kept.

    Attributes:
        enough_members: The episodes of a group that must end, at least 1; None waits for all.
        enough_share: The share of the groups that must end, in (0, 1]; None waits for all.
        enough_turns: The turns that every episode may take before it is stopped, 0 or more.
        retries: The number of retries of a failed episode, and of a group that cannot be opened or
            whose restarted member starts in another state.
        pause_s: The seconds before the first retry; each further retry waits twice as long.
        allow_initial_overflow: Count an episode as lost if its first prompt does not fit into the
            model's context, instead of raising `ContextOverflow`.
        on_finish: A callback for each rollout once its group has ended.
        run: The function that plays an episode.
        branch: The siblings' places in a group's episodes; None for no siblings.

    Raises:
        ConfigError: A number is out of its range.
    """

    enough_members: int | None = None
    enough_share: float | None = None
    enough_turns: int = 0
    retries: int = 2
    pause_s: float = 1.0
    allow_initial_overflow: bool = False
    on_finish: OnFinish = _ignore
    run: RunEpisode = run_episode
    branch: Branches | None = None

    def __post_init__(self) -> None:
        if self.enough_members is not None and self.enough_members < 1:
            raise ConfigError(f"enough_members must be at least 1, got {self.enough_members}")
        if self.enough_share is not None and not 0 < self.enough_share <= 1:
            raise ConfigError(f"enough_share must be in (0, 1], got {self.enough_share}")
        if self.enough_turns < 0:
            raise ConfigError(f"enough_turns must be at least 0, got {self.enough_turns}")

    def num_members(self, group_size: int) -> int:
        """Return how many episodes of a group must end."""
        return group_size if self.enough_members is None else min(self.enough_members, group_size)

    def num_groups(self, groups: int) -> int:
        """Return how many of the groups must end."""
        return groups if self.enough_share is None else math.ceil(self.enough_share * groups - 1e-9)


_log = logging.getLogger(__name__)

PlayEpisode = Callable[[Episode], Coroutine[Any, Any, Rollout]]
"""Plays an episode that was reset."""


class GroupRunner:
    """Runs one group of a collection, the group number `index`, until `stopped` is done."""

    def __init__(
        self,
        pool: EnvPool,
        draw: TaskDraw,
        index: int,
        play: PlayEpisode,
        options: CollectOptions,
        stopped: asyncio.Future[None],
    ) -> None:
        self._pool, self._draw, self._index = pool, draw, index
        self._play, self._options, self._stopped = play, options, stopped
        self._branch = options.branch

    async def run(self) -> list[Rollout]:
        """Return the group's rollouts, or a single one with the error of the member that failed."""
        error = ""
        for attempt in range(self._options.retries + 1):
            if self._stopped.done():
                return []
            try:
                return await self._run_once()
            except (EnvUnavailable, GroupMismatch) as e:
                error = describe(e)
                _log.warning("%s, attempt %d: %s", self._draw.task_id, attempt + 1, error)
                if attempt < self._options.retries:
                    await asyncio.sleep(self._options.pause_s * 2**attempt)
        return [self._lost(error)]

    def _lost(self, error: str) -> Rollout:
        """Return the one rollout of a group that could not be completed."""
        return Rollout(self._draw.task_id, "", self._index, 0, self._draw.seed, error=error)

    async def _run_once(self) -> list[Rollout]:
        """Run the group once; raise `EnvUnavailable` or, if a state differs, `GroupMismatch`."""
        usable = False
        group = await self._pool.take_async()
        try:
            episodes = await self._open(group)
            rollouts = await self._play_members(group, episodes)
            rollouts += await self._siblings(group, episodes, rollouts)
            error = next((rollout.error for rollout in rollouts if rollout.error), "")
            usable = not error
            return rollouts if usable else [self._lost(error)]
        finally:
            if usable:
                self._pool.release(group)
            else:
                await self._pool.call(group.close, blocking=group.envs[0].blocking)

    async def _open(self, group: GroupEnv) -> list[Episode]:
        draw = self._draw
        observations, infos = await self._pool.call(
            lambda: group.reset(seed=draw.seed, options={"task_id": draw.task_id}),
            blocking=group.envs[0].blocking,
            interrupt=group.envs[0].interrupt,
        )
        return [
            self._episode(env, member, observation, info)
            for member, (env, observation, info) in enumerate(
                zip(group.envs, observations, infos, strict=True)
            )
        ]

    def _episode(
        self, env: TextEnv, member: int, observation: Observation, info: dict[str, Any]
    ) -> Episode:
        points: list[Point] | None = None if self._branch is None else []
        return Episode(
            self._pool, env, self._draw, self._index, member, observation, info, points=points
        )

    async def _play_members(self, group: GroupEnv, episodes: list[Episode]) -> list[Rollout]:
        """Return the rollouts that ended; when this returns, no environment is in use.

        Restarted episodes replace the failed ones in `episodes`. Raises `GroupMismatch` if one of
        them starts in another state.
        """
        tasks = [
            asyncio.ensure_future(self._play_member(group, episodes, member))
            for member in range(len(episodes))
        ]
        wanted = self._options.num_members(len(tasks))
        try:
            while True:
                ended = [task for task in tasks if task.done()]
                failed = any(task.exception() or task.result().error for task in ended)
                if failed or len(ended) >= wanted or self._stopped.done():
                    break
                pending = [task for task in tasks if not task.done()]
                awaited: list[asyncio.Future[Any]] = [self._stopped, *pending]
                await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
            if not failed:
                await self._finish_turns(episodes, tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        rollouts = [task.result() for task in tasks if not task.cancelled()]
        if not failed:  # drop episodes that failed after enough had ended
            rollouts = [rollout for rollout in rollouts if not rollout.error]
        return [rollout for rollout in rollouts if rollout.stop_reason is not StopReason.STOPPED]

    async def _play_member(self, group: GroupEnv, episodes: list[Episode], member: int) -> Rollout:
        """Return a member's rollout, with an error if it failed more often than retries allow."""
        rollout = await self._play(episodes[member])
        for attempt in range(self._options.retries):
            if not rollout.error:
                break
            where = f"{rollout.task_id}, member {member}, attempt {attempt + 1}"
            _log.warning("%s: %s", where, rollout.error)
            await asyncio.sleep(self._options.pause_s * 2**attempt)
            try:
                episodes[member] = await self._restart(group, episodes[member])
            except EnvUnavailable as e:
                rollout.error = describe(e)
            else:
                rollout = await self._play(episodes[member])
        return rollout

    async def _restart(self, group: GroupEnv, failed: Episode) -> Episode:
        member = failed.member
        observation, info = await self._pool.call(
            lambda: group.begin_again(member),
            blocking=failed.env.blocking,
            interrupt=lambda: group.envs[member].interrupt(),
        )
        restarted = self._episode(group.envs[member], member, observation, info)
        restarted.stop_at = failed.stop_at
        return restarted

    async def _siblings(
        self, group: GroupEnv, episodes: Sequence[Episode], ended: Sequence[Rollout]
    ) -> list[Rollout]:
        """Return the rollouts that branch from ended ones; none once the collection stops."""
        failed = any(rollout.error for rollout in ended)
        if self._branch is None or failed or not ended or self._stopped.done():
            return []
        own = self._options
        runner = SiblingRunner(self._branch, group, episodes, self._play, own.retries, own.pause_s)
        return await runner.run(ended)

    async def _finish_turns(
        self, episodes: Sequence[Episode], tasks: Sequence[asyncio.Task[Rollout]]
    ) -> None:
        """Let episodes run on until each has taken `enough_turns` turns."""
        turns = self._options.enough_turns
        early = [
            (episode, task)
            for episode, task in zip(episodes, tasks, strict=True)
            if not task.done() and len(episode.rollout.turns) < turns
        ]
        for episode, _ in early:
            episode.stop_at = turns
        if early:
            await asyncio.wait([task for _, task in early])
