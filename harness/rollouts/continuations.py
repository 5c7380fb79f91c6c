"""Continuations: episodes played on from forks, which measure the value of a state.

V(s, h), with s the state of the environment and h the policy's further knowledge, is the mean
return of K continuations from a fork right before a turn; they draw the turn's action anew. Turns
in equal states with equal h and equally many turns left share their continuations. They are played
while the episodes go on, so that a model answers many of them at once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final, Protocol

import numpy as np

from agentgyms.core.env import TextEnv
from agentgyms.core.errors import EnvUnavailable
from harness.rollouts.agent import Agent
from harness.rollouts.episode import Episode, describe, run_episode
from harness.rollouts.self_play import is_partners
from harness.rollouts.views import Actor, Decision, EpisodeView
from harness.types.arrays import Floats
from harness.types.errors import ModelUnavailable
from harness.types.hyperparameters import one_of
from harness.types.messages import texts_of
from harness.types.rollout import Rollout, StopReason, Usage
from harness.types.task_draws import seed_of

REWARDS: Final = ("success", "score", "environment")
"""The terms of a return: 1 for a success, the score at the end, or the environment's rewards."""

_CONTINUATIONS: Final = 2
"""Stream of random numbers of the continuations; the rollouts have others."""


@dataclass(frozen=True, slots=True)
class Continuation:
    """The rest of an episode, played on from a fork."""

    rewards: tuple[float, ...]  # of each turn after the fork
    success: bool
    score: float
    usage: Usage = field(default_factory=Usage)  # of the turns after the fork


@dataclass(slots=True)
class Cost:
    """The cost of a measurement: continuations, environment steps, tokens and seconds."""

    continuations: int = 0
    steps: int = 0
    tokens: int = 0
    seconds: float = 0.0


async def fork(episode: Episode, chance: int) -> Episode:
    """Return an independent copy of an episode in progress, in the same state.

    With equal seeds it goes on as the original does, but for what chance decides, which it draws
    anew by the number `chance`. Its rollout begins with the turns taken so far and has no
    recording. The caller closes its environment. Raises `EnvUnavailable` if the environment cannot
    be forked.
    """

    def forked() -> TextEnv:
        twin = episode.env.fork()
        twin.redraw(chance)
        return twin

    return episode.moved_to(await episode.call(forked))


class ContinuationPlayer(Protocol):
    """Plays an episode on from its current state."""

    def key(self, episode: Episode) -> str:
        """Return the policy's knowledge beside the state; equal keys have equal continuations."""
        ...

    async def play_on(
        self, episode: Episode, seeds: Sequence[int]
    ) -> Awaitable[Sequence[Continuation]]:
        """Fork the episode once per seed; the episode may go on as soon as this returns."""
        ...


class AgentContinuations:
    """A language model's agent plays on, with the episode's history, `max_live` forks at a time."""

    def __init__(self, agent: Agent, max_live: int = 256) -> None:
        self.agent, self._slots = agent, asyncio.Semaphore(max_live)

    def key(self, episode: Episode) -> str:
        """Return the text of the next prompt."""
        return "\n".join(texts_of(self.agent.messages(episode.view())))

    async def play_on(
        self, episode: Episode, seeds: Sequence[int]
    ) -> Awaitable[Sequence[Continuation]]:
        """Fork the episode once per seed; failures of environment or model are `EnvUnavailable`."""
        playing: list[asyncio.Task[Continuation]] = []
        try:
            for seed in seeds:
                twin = await self._twin(episode, seed)
                playing.append(asyncio.ensure_future(self._play(twin, seed)))
        except BaseException:
            for task in playing:
                task.cancel()
            raise
        return asyncio.gather(*playing)

    async def _twin(self, episode: Episode, seed: int) -> Episode:
        """Return a fork, as soon as one more may be played."""
        await self._slots.acquire()
        try:
            twin = await fork(episode, seed)
        except BaseException:
            self._slots.release()
            raise
        twin.member = 0  # its decisions depend on the seed alone
        return twin

    async def _play(self, twin: Episode, seed: int) -> Continuation:
        taken = len(twin.rollout.turns)
        try:
            rollout = await run_episode(twin, self.agent, seed=seed)
        finally:
            await twin.pool.call(twin.env.close, blocking=twin.env.blocking)
            self._slots.release()
        if rollout.error:
            raise EnvUnavailable(f"a continuation of {rollout.task_id} failed: {rollout.error}")
        own = rollout.turns[taken:]
        usage = sum((one.usage for turn in own for one in turn.answers), Usage())
        rewards = tuple(turn.reward for turn in own)
        return Continuation(rewards, rollout.success, rollout.score, usage)


class StateReturns:
    """Plays the episodes of one collection, and K continuations from each of their states."""

    def __init__(
        self,
        player: ContinuationPlayer,
        count: int,
        reward: str = "success",  # one of `REWARDS`
        gamma: float = 1.0,
        scale: float = 1.0,
    ) -> None:
        one_of("reward", reward, REWARDS)
        self._player, self._count = player, count
        self._reward, self._gamma, self._scale = reward, gamma, scale
        # By seed, group, turn, state and the player's key.
        self._shared: dict[tuple[int, int, int, str, str], asyncio.Task[Floats]] = {}
        self._running, self._since = 0, 0.0
        self.cost = Cost()  # its seconds are those in which any continuation was played

    async def run(
        self, episode: Episode, actor: Actor, *, seed: int, allow_initial_overflow: bool = False
    ) -> Rollout:
        """Play as `run_episode` does; fill `state_returns`, or `error` if a continuation failed."""
        measuring = _MeasuringActor(self, actor, episode, seed)
        rollout = await run_episode(
            episode, measuring, seed=seed, allow_initial_overflow=allow_initial_overflow
        )
        # The last state was measured in vain if its turn failed or its prompt did not fit.
        measured = measuring.measured[: len(rollout.own_turns)]
        if rollout.error or not measured:
            return rollout
        try:
            # Other episodes may wait for the same tasks, so cancelling this one must not end them.
            returns = await asyncio.gather(*(asyncio.shield(task) for task in measured))
        except (EnvUnavailable, ModelUnavailable) as e:
            rollout.stop_reason, rollout.error = StopReason.ERROR, describe(e)
        else:
            before = [] if rollout.state_returns is None else [rollout.state_returns]
            rollout.state_returns = np.concatenate([*before, np.stack(returns)])  # [N, K]
        return rollout

    async def begin(self, episode: Episode, seed: int) -> asyncio.Task[Floats]:
        """Fork an episode; return the task of the returns from its state, of shape [K]."""
        known, turn = self._player.key(episode), int(episode.info["turn"])
        key = (seed, episode.group, turn, str(episode.info["state_key"]), known)
        task = self._shared.get(key)
        if task is None:
            forked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            task = self._shared[key] = asyncio.ensure_future(self._play_on(episode, key, forked))
            task.add_done_callback(lambda done: self._ended(key, done))
            # `task` alone ends if a fork fails; the episode may go on after either.
            both: list[asyncio.Future[Any]] = [forked, task]
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        return task

    def _ended(self, key: tuple[int, int, int, str, str], task: asyncio.Task[Floats]) -> None:
        if task.cancelled() or task.exception():
            self._shared.pop(key, None)  # an episode that is played again asks anew

    async def _play_on(
        self,
        episode: Episode,
        key: tuple[int, int, int, str, str],
        forked: asyncio.Future[None],
    ) -> Floats:
        seed, group, turn, state, known = key
        digest = blake2b(f"{state}\0{known}".encode("utf-8", "surrogatepass"), digest_size=6)
        name = int.from_bytes(digest.digest(), "big")
        seeds = [seed_of(seed, _CONTINUATIONS, group, turn, name, k) for k in range(self._count)]
        # Continuations of several states overlap; the clock runs while there is any.
        self._since = self._since if self._running else time.perf_counter()
        self._running += 1
        try:
            playing = await self._player.play_on(episode, seeds)
            forked.set_result(None)
            played = await playing
        finally:
            self._running -= 1
            if not self._running:
                self.cost.seconds += time.perf_counter() - self._since
        self.cost.continuations += len(played)
        self.cost.steps += sum(len(one.rewards) for one in played)
        self.cost.tokens += sum(one.usage.prompt + one.usage.response for one in played)
        return np.array([self._return(one) for one in played])  # [K]

    def _return(self, played: Continuation) -> float:
        rewards = played.rewards
        if self._reward != "environment":
            at_end = played.success if self._reward == "success" else played.score
            rewards = (*(0.0,) * (len(rewards) - 1), float(at_end))
        return self._scale * sum(reward * self._gamma**i for i, reward in enumerate(rewards))


class _MeasuringActor:
    """An actor of one episode that has each state measured before it decides."""

    measured: list[asyncio.Task[Floats]]
    """One task per decision, in order."""

    def __init__(self, returns: StateReturns, actor: Actor, episode: Episode, seed: int) -> None:
        self._returns, self._actor, self._episode, self._seed = returns, actor, episode, seed
        self.measured = []

    async def act(self, view: EpisodeView, seed: int) -> Decision:
        if not is_partners(view.info):
            self.measured.append(await self._returns.begin(self._episode, self._seed))
        return await self._actor.act(view, seed)
