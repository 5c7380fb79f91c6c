"""Plays many episodes at once, without lock step: each waits for its own turns only.

Infrastructure failures are caught here and nowhere else. A failed episode is played again; a group
that stays incomplete is dropped whole, so that nobody mistakes a lost server for a lost game.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from agentgyms.core import Feedback, Observation, TextEnv
from agentgyms.errors import EnvUnavailable, GroupMismatch
from agentgyms.group import GroupEnv
from agentgyms.registration import url_from_environment
from harness.agent import Actor, EpisodeView
from harness.errors import ContextOverflow
from harness.images import look
from harness.rollout import Rollout, StopReason, Turn
from harness.sampling import TaskDraw, seed_of

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

Progress = Callable[[Rollout], object]


@dataclass(slots=True)
class Episode:
    """One episode about to be played: an environment that was reset, and what it answered."""

    pool: EnvPool
    env: TextEnv
    draw: TaskDraw
    group: int
    member: int
    observation: Observation
    info: dict[str, Any]


class EnvPool:
    """Groups of environments, made when needed and used again from one training step to the next.

    Environments that wait for something outside this process, such as a server, are made, used and
    closed in threads, one for each that may be live; all others on the event loop itself.

    Args:
        env_id: A registered id.
        group_size: Rollouts per task.
        max_live: Most environments at once, at least one group's.
        **kwargs: As for `gymnasium.make`.
    """

    def __init__(self, env_id: str, group_size: int, max_live: int, **kwargs: Any) -> None:
        """Make no environment yet."""
        self.env_id, self.group_size, self.kwargs = env_id, group_size, kwargs
        self.max_groups = max(1, max_live // group_size)
        self._free: list[GroupEnv] = []
        self._threads = ThreadPoolExecutor(self.max_groups * group_size, "environment")
        self._remote = bool(kwargs.get("url") or url_from_environment(env_id))

    def take(self) -> GroupEnv:
        """Return a group nobody uses."""
        return (
            self._free.pop()
            if self._free
            else GroupEnv(self.env_id, self.group_size, **self.kwargs)
        )

    async def take_soon(self) -> GroupEnv:
        """Return a group nobody uses, while other episodes go on."""
        return await self.call(self.take, blocking=self._remote and not self._free)

    def give_back(self, group: GroupEnv) -> None:
        """Let others use the group."""
        self._free.append(group)

    async def call(self, work: Callable[[], _T], *, blocking: bool) -> _T:
        """Return `work()`, done in a thread if it is `blocking`."""
        if not blocking:
            return work()
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

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
    retries: int = 2,
    pause_s: float = 1.0,
    on_finish: Progress = lambda _: None,
) -> list[Rollout]:
    """Return the rollouts of every task, `pool.group_size` each, in the order of the tasks.

    Args:
        pool: Where the environments come from.
        draws: The tasks; group i plays `draws[i]`.
        actor: Who decides.
        seed: All decisions' seeds derive from it, the group, the member and the turn.
        retries: How often a group whose environments fail is played again.
        pause_s: Wait before it is played again; twice as long after every further failure.
        on_finish: Called with each rollout once its group has ended.

    Returns:
        The rollouts; a group that kept failing is there once, as a single rollout with `error`.
    """
    places = asyncio.Semaphore(pool.max_groups)

    async def play(draw: TaskDraw, index: int) -> list[Rollout]:
        async with places:
            for attempt in range(retries + 1):
                rollouts = await _play_group(pool, draw, index, actor, seed)
                if not rollouts[0].error:
                    break
                _log.warning("%s, attempt %d: %s", draw.task_id, attempt + 1, rollouts[0].error)
                if attempt < retries:
                    await asyncio.sleep(pause_s * 2**attempt)
            return rollouts

    async def play_and_tell(draw: TaskDraw, index: int) -> list[Rollout]:
        rollouts = await play(draw, index)
        for rollout in rollouts:
            on_finish(rollout)
        return rollouts

    groups = await asyncio.gather(*(play_and_tell(d, i) for i, d in enumerate(draws)))
    return [rollout for group in groups for rollout in group]


async def _play_group(
    pool: EnvPool, draw: TaskDraw, index: int, actor: Actor, seed: int
) -> list[Rollout]:
    """Return the rollouts of a group, or a single one with the error that one of them met."""
    group = None
    try:
        group = await pool.take_soon()
        episodes = await _open_group(pool, group, draw, index)
        rollouts = await asyncio.gather(*(run_episode(e, actor, seed=seed) for e in episodes))
        error = next((rollout.error for rollout in rollouts if rollout.error), "")
    except (EnvUnavailable, GroupMismatch) as e:
        error = describe(e)
    if group is not None and not error:
        pool.give_back(group)
        return rollouts
    if group is not None:
        await pool.call(group.close, blocking=group.envs[0].blocking)
    return [Rollout(draw.task_id, "", index, 0, draw.seed, error=error)]


async def _open_group(pool: EnvPool, group: GroupEnv, draw: TaskDraw, index: int) -> list[Episode]:
    observations, infos = await pool.call(
        lambda: group.reset(seed=draw.seed, options={"task_id": draw.task_id}),
        blocking=group.envs[0].blocking,
    )
    return [
        Episode(pool, env, draw, index, member, observation, info)
        for member, (env, observation, info) in enumerate(
            zip(group.envs, observations, infos, strict=True)
        )
    ]


async def run_episode(episode: Episode, actor: Actor, *, seed: int) -> Rollout:
    """Play one episode to its end.

    A failure of the environment's infrastructure ends it with `error`; a bad action never does. A
    prompt that outgrows the model's context ends it as lost.

    Raises:
        ContextOverflow: The very first prompt does not fit.
    """
    env, info = episode.env, episode.info
    rollout = Rollout(
        episode.draw.task_id,
        info["family"],
        episode.group,
        episode.member,
        episode.draw.seed,
        goal=info["goal"],
    )
    text, image = look(episode.observation)
    view = EpisodeView(text, text, info, env.max_turns, rollout.turns, image)
    try:
        over = False
        while not over:
            turn_seed = seed_of(seed, episode.group, episode.member, len(rollout.turns))
            over = await _take_turn(episode, actor, view, rollout, turn_seed)
    except EnvUnavailable as e:
        rollout.stop_reason, rollout.error = StopReason.ERROR, describe(e)
    except ContextOverflow:
        if not rollout.turns:
            raise
        rollout.stop_reason = StopReason.CONTEXT_LIMIT
    return rollout


async def _take_turn(
    episode: Episode, actor: Actor, view: EpisodeView, rollout: Rollout, seed: int
) -> bool:
    decision = await actor.act(view, seed)
    observation, reward, terminated, truncated, info = await episode.pool.call(
        lambda: episode.env.step(decision.action), blocking=episode.env.blocking
    )
    text, image = look(observation)
    turn = Turn(
        observation=view.observation,
        state_key=view.info["state_key"],
        completion=decision.completion,
        action=decision.action,
        action_key=info["action_key"],
        feedback=info["feedback"] if decision.valid else Feedback.MALFORMED.value,
        reward=float(reward),
        next_observation=text,
        next_state_key=info["state_key"],
        progress=info["progress"],
        image=view.image,
    )
    rollout.turns.append(turn)
    view.observation, view.image, view.info = text, image, info
    rollout.success, rollout.score = info["success"], info["score"]
    rollout.stop_reason = StopReason.TERMINATED if terminated else StopReason.TURN_LIMIT
    return terminated or truncated


def describe(error: Exception) -> str:
    """Return an error's class and message in one line."""
    return f"{type(error).__name__}: {error}"
