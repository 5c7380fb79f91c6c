"""Plays many episodes at once, without lock step: each waits for its own turns only.

Infrastructure failures are caught here and nowhere else. A failed episode is played again; a group
that stays incomplete is dropped whole, so that nobody mistakes a lost server for a lost game.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from agentgyms.core import TextEnv
from agentgyms.errors import EnvUnavailable, GroupMismatch
from agentgyms.group import GroupEnv
from harness.agent import Actor, EpisodeView
from harness.rollout import Rollout, StopReason, Turn
from harness.sampling import TaskDraw, seed_of

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

Progress = Callable[[Rollout], object]


@dataclass(slots=True)
class Episode:
    """One episode about to be played: an environment that was reset, and what it answered."""

    env: TextEnv
    draw: TaskDraw
    group: int
    member: int
    observation: str
    info: dict[str, Any]


class EnvPool:
    """Groups of environments, made when needed and used again from one training step to the next.

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

    def take(self) -> GroupEnv:
        """Return a group nobody uses."""
        return (
            self._free.pop()
            if self._free
            else GroupEnv(self.env_id, self.group_size, **self.kwargs)
        )

    def give_back(self, group: GroupEnv) -> None:
        """Let others use the group."""
        self._free.append(group)

    def close(self) -> None:
        """Close all environments that nobody uses."""
        for group in self._free:
            group.close()
        self._free.clear()


async def collect(
    pool: EnvPool,
    draws: Sequence[TaskDraw],
    actor: Actor,
    *,
    seed: int,
    retries: int = 2,
    on_finish: Progress = lambda _: None,
) -> list[Rollout]:
    """Return the rollouts of every task, `pool.group_size` each, in the order of the tasks.

    Args:
        pool: Where the environments come from.
        draws: The tasks; group i plays `draws[i]`.
        actor: Who decides.
        seed: All decisions' seeds derive from it, the group, the member and the turn.
        retries: How often a group whose environments fail is played again.
        on_finish: Called with each rollout as it ends.

    Returns:
        The rollouts; a group that kept failing is there once, as a single rollout with `error`.
    """
    places = asyncio.Semaphore(pool.max_groups)

    async def play(draw: TaskDraw, index: int) -> list[Rollout]:
        async with places:
            return await _play_group(pool, draw, index, actor, seed, retries)

    async def play_and_tell(draw: TaskDraw, index: int) -> list[Rollout]:
        rollouts = await play(draw, index)
        for rollout in rollouts:
            on_finish(rollout)
        return rollouts

    groups = await asyncio.gather(*(play_and_tell(d, i) for i, d in enumerate(draws)))
    return [rollout for group in groups for rollout in group]


async def _play_group(
    pool: EnvPool, draw: TaskDraw, index: int, actor: Actor, seed: int, retries: int
) -> list[Rollout]:
    error = ""
    for attempt in range(retries + 1):
        group = pool.take()
        try:
            episodes = await _open_group(group, draw, index)
            rollouts = await asyncio.gather(*(run_episode(e, actor, seed=seed) for e in episodes))
            error = next((rollout.error for rollout in rollouts if rollout.error), "")
        except (EnvUnavailable, GroupMismatch) as e:
            error = describe(e)
        if not error:
            pool.give_back(group)
            return rollouts
        group.close()
        _log.warning("task %s, attempt %d: %s", draw.task_id, attempt + 1, error)
    return [Rollout(draw.task_id, "", index, 0, draw.seed, error=error)]


async def _open_group(group: GroupEnv, draw: TaskDraw, index: int) -> list[Episode]:
    options = {"task_id": draw.task_id}
    observations, infos = await _run(
        group.envs[0], lambda: group.reset(seed=draw.seed, options=options)
    )
    return [
        Episode(env, draw, index, member, str(observation), info)
        for member, (env, observation, info) in enumerate(
            zip(group.envs, observations, infos, strict=True)
        )
    ]


async def run_episode(episode: Episode, actor: Actor, *, seed: int) -> Rollout:
    """Play one episode to its end.

    A failure of the environment's infrastructure ends it with `error`; a bad action never does.
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
    view = EpisodeView(episode.observation, episode.observation, info, env.max_turns, rollout.turns)
    try:
        over = False
        while not over:
            turn_seed = seed_of(seed, episode.group, episode.member, len(rollout.turns))
            over = await _take_turn(env, actor, view, rollout, turn_seed)
    except EnvUnavailable as e:
        rollout.stop_reason, rollout.error = StopReason.ERROR, describe(e)
    return rollout


async def _take_turn(
    env: TextEnv, actor: Actor, view: EpisodeView, rollout: Rollout, seed: int
) -> bool:
    decision = await actor.act(view, seed)
    observation, reward, terminated, truncated, info = await _run(
        env, lambda: env.step(decision.action)
    )
    turn = Turn(
        observation=view.observation,
        state_key=view.info["state_key"],
        completion=decision.completion,
        action=decision.action,
        action_key=info["action_key"],
        feedback=info["feedback"],
        reward=float(reward),
        next_observation=str(observation),
        next_state_key=info["state_key"],
        progress=info["progress"],
    )
    rollout.turns.append(turn)
    view.observation, view.info = turn.next_observation, info
    rollout.success, rollout.score = info["success"], info["score"]
    rollout.stop_reason = StopReason.TERMINATED if terminated else StopReason.TURN_LIMIT
    return terminated or truncated


async def _run(env: TextEnv, call: Callable[[], _T]) -> _T:
    """Call an environment: in a thread if it waits for something outside this process."""
    if env.blocking:
        return await asyncio.to_thread(call)
    return call()


def describe(error: Exception) -> str:
    """Return an error's class and message in one line."""
    return f"{type(error).__name__}: {error}"
