"""Plays one group: opened in one state, its lost members begun again, given back or dropped whole.

An episode whose environment or model failed is played again alone, on a fresh environment that is
reset as the group was and must show the state that the group started in. Its decisions have the
same seeds as before, so nothing tells it from one that nothing befell. Where the state is another
one, the whole group is played again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentgyms.errors import EnvUnavailable, GroupMismatch
from agentgyms.group import GroupEnv
from harness.episode import Episode, describe
from harness.rollout import Rollout, StopReason
from harness.sampling import TaskDraw

if TYPE_CHECKING:
    from harness.collect import Enough, EnvPool

_log = logging.getLogger(__name__)

Play = Callable[[Episode], Coroutine[Any, Any, Rollout]]


@dataclass(frozen=True, slots=True)
class Terms:
    """What holds for all groups of a collection.

    Attributes:
        pool: Where the environments come from.
        run: Plays an episode that was reset.
        enough: When a group has ended.
        over: Done as soon as collection stops.
        retries: How often an episode, or a group, is played again.
        pause_s: Wait before the first time; twice as long before every further one.
    """

    pool: EnvPool
    run: Play
    enough: Enough
    over: asyncio.Future[None]
    retries: int
    pause_s: float

    async def pause(self, attempt: int) -> None:
        """Wait after failed attempt number `attempt`, from 0."""
        await asyncio.sleep(self.pause_s * 2**attempt)


async def play_group(terms: Terms, draw: TaskDraw, index: int) -> list[Rollout]:
    """Return the rollouts of a group, or a single one with the error that cost it a member."""
    error = ""
    for attempt in range(terms.retries + 1):
        if terms.over.done():
            return []
        try:
            return await _play_once(terms, draw, index)
        except (EnvUnavailable, GroupMismatch) as e:
            error = describe(e)
            _log.warning("%s, attempt %d: %s", draw.task_id, attempt + 1, error)
            if attempt < terms.retries:
                await terms.pause(attempt)
    return [_lost(draw, index, error)]


def _lost(draw: TaskDraw, index: int, error: str) -> Rollout:
    return Rollout(draw.task_id, "", index, 0, draw.seed, error=error)


async def _play_once(terms: Terms, draw: TaskDraw, index: int) -> list[Rollout]:
    """Play a group that opens and whose members, if they begin again, begin as it did."""
    pool, usable = terms.pool, False
    group = await pool.take_soon()
    try:
        members = Members(terms, group, await _open(pool, group, draw, index))
        rollouts = await members.play()
        error = next((rollout.error for rollout in rollouts if rollout.error), "")
        usable = not error
        return rollouts if usable else [_lost(draw, index, error)]
    finally:
        if usable:
            pool.give_back(group)
        else:
            await pool.call(group.close, blocking=group.envs[0].blocking)


async def _open(pool: EnvPool, group: GroupEnv, draw: TaskDraw, index: int) -> list[Episode]:
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


class Members:
    """The episodes of a group.

    Args:
        terms: Of the collection.
        group: Their environments.
        episodes: Reset, with no turn taken.
    """

    def __init__(self, terms: Terms, group: GroupEnv, episodes: Sequence[Episode]) -> None:
        """Play nothing yet."""
        self._terms, self._group, self._episodes = terms, group, list(episodes)

    async def play(self) -> list[Rollout]:
        """Return the rollouts that ended; when it returns, no environment is in use.

        Raises:
            GroupMismatch: A lost episode began elsewhere than its group.
        """
        over = self._terms.over
        tasks = [asyncio.ensure_future(self._play(i)) for i in range(len(self._episodes))]
        wanted = self._terms.enough.num_members(len(tasks))
        try:
            while True:
                ended = [task for task in tasks if task.done()]
                failed = any(task.exception() or task.result().error for task in ended)
                if failed or len(ended) >= wanted or over.done():
                    break
                awaited: list[asyncio.Future[Any]] = [over, *(t for t in tasks if not t.done())]
                await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
            if not failed:
                await self._finish_turns(tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        rollouts = [task.result() for task in tasks if not task.cancelled()]
        if not failed:  # what befell an episode after enough had ended is of no interest
            rollouts = [rollout for rollout in rollouts if not rollout.error]
        return [rollout for rollout in rollouts if rollout.stop_reason is not StopReason.STOPPED]

    async def _play(self, member: int) -> Rollout:
        """Return an episode's rollout; with an error if it was lost too often."""
        rollout = await self._terms.run(self._episodes[member])
        for attempt in range(self._terms.retries):
            if not rollout.error:
                break
            where = f"{rollout.task_id}, member {member}, attempt {attempt + 1}"
            _log.warning("%s: %s", where, rollout.error)
            await self._terms.pause(attempt)
            try:
                await self._begin_again(member)
            except EnvUnavailable as e:
                rollout.error = describe(e)
            else:
                rollout = await self._terms.run(self._episodes[member])
        return rollout

    async def _begin_again(self, member: int) -> None:
        """Reset a lost episode on a fresh environment."""
        lost, pool, group = self._episodes[member], self._terms.pool, self._group
        observation, info = await pool.call(
            lambda: group.begin_again(member),
            blocking=lost.env.blocking,
            interrupt=lambda: group.envs[member].interrupt(),
        )
        fresh = Episode(pool, group.envs[member], lost.draw, lost.group, member, observation, info)
        fresh.stop_at = lost.stop_at
        self._episodes[member] = fresh

    async def _finish_turns(self, tasks: Sequence[asyncio.Task[Rollout]]) -> None:
        """Let the episodes go on that have not taken as many turns as every one may."""
        turns = self._terms.enough.turns
        early = [
            (episode, task)
            for episode, task in zip(self._episodes, tasks, strict=True)
            if not task.done() and len(episode.rollout.turns) < turns
        ]
        for episode, _ in early:
            episode.stop_at = turns
        if early:
            await asyncio.wait([task for _, task in early])
