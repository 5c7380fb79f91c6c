"""The true advantage of every turn, measured by continuations from forks of its episode.

With pi the policy that played, s the state of the environment and h what the policy knows beside
it, V(s, h) is the mean return of K continuations from a fork right before the turn, in which the
turn's own action is drawn anew. The advantage of turn t is A = r_t + gamma V(s_t+1, h_t+1) -
V(s_t, h_t), with V = 0 behind the end. States that are equal, with equal h and as many turns left,
share their continuations.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final

import numpy as np
from numpy.typing import NDArray

from harness.audit.policies import AuditPolicy, Chances, Continuation
from harness.credit.table import TurnTable
from harness.rollouts.collect import collect_episodes
from harness.rollouts.collect_options import CollectOptions, OnFinish
from harness.rollouts.env_pool import EnvPool
from harness.rollouts.episode import Episode, run_episode
from harness.rollouts.self_play import is_partners
from harness.rollouts.views import Decision, EpisodeView
from harness.types.arrays import Floats, Ints
from harness.types.errors import ConfigError, TrainingError
from harness.types.hyperparameters import unknown
from harness.types.rollout import Rollout
from harness.types.task_draws import TaskDraw, seed_of

REWARDS: Final = ("success", "score", "environment")
"""What a return adds up: 1 for a success, the score at the end, or the environment's rewards."""

_CONTINUATIONS: Final = 2
"""Stream of random numbers of the continuations; the rollouts have others."""


@dataclass(frozen=True, slots=True)
class TruthOptions:
    """What is measured.

    Attributes:
        continuations: K, from each state; a multiple of 4, because the ceiling compares quarters.
        reward: One of `REWARDS`, for the truth and for the methods.
        gamma: Discount of each later turn, in (0, 1].
        reward_scale: Factor on the rewards that the methods see; the papers train on 10.

    Raises:
        ConfigError: A value is out of range.
    """

    continuations: int = 48
    reward: str = "success"
    gamma: float = 1.0
    reward_scale: float = 10.0

    def __post_init__(self) -> None:
        """Check the ranges."""
        if self.continuations < 4 or self.continuations % 4:
            raise ConfigError(
                f"continuations must be a positive multiple of 4, got {self.continuations}"
            )
        if self.reward not in REWARDS:
            raise ConfigError(unknown("reward", self.reward, REWARDS))
        if not 0 < self.gamma <= 1:
            raise ConfigError(f"gamma must be in (0, 1], got {self.gamma}")


@dataclass(slots=True)
class Cost:
    """What a measurement took: continuations, their environment steps and tokens, and seconds."""

    continuations: int = 0
    steps: int = 0
    tokens: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, eq=False)
class Truth:
    """Rollouts with the returns of continuations from every state.

    Attributes:
        turns: The rollouts' turns, N rows.
        returns: Returns of the continuations from right before each turn. Shape [N, K].
        options: What was measured.
        cost: What it took.
        taken: The policy's probability of each turn's action. Shape [N]; None if unknown.
        equal: Its probability of drawing one action twice there. Shape [N]; None if unknown.
        known: Number of what the policy knows beside the state, equal where it is. Shape [N]; None
            if it knows nothing else.
        sketch: Projected gradient of each action's log-probability by the policy's parameters, see
            `parameter_gradients`. Shape [N, D]; None if there is none.
    """

    turns: TurnTable
    returns: Floats
    options: TruthOptions
    cost: Cost = field(default_factory=Cost)
    taken: Floats | None = None
    equal: Floats | None = None
    known: Ints | None = None
    sketch: NDArray[np.float16] | None = None

    @property
    def advantage(self) -> Floats:
        """The true advantage of each turn, in units of the reward. Shape [N]."""
        return self.advantage_by(np.arange(self.returns.shape[1]))

    @property
    def error(self) -> Floats:
        """The standard error of each advantage. Shape [N]."""
        variance = self.returns.var(axis=1, ddof=1) / self.returns.shape[1]
        error: Floats = np.sqrt(variance + self.options.gamma**2 * self._after(variance))
        return error

    def advantage_by(self, some: Ints) -> Floats:
        """Return the advantages by some of the continuations, given their numbers."""
        value = self.returns[:, some].mean(axis=1)
        reward = self.turns.reward / self.options.reward_scale
        advantage: Floats = reward + self.options.gamma * self._after(value) - value
        return advantage

    def _after(self, before: Floats) -> Floats:
        """Return each turn's value of the state behind it, 0 behind the last turn."""
        return np.where(self.turns.goes_on, np.append(before[1:], 0.0), 0.0)


async def measure(
    pool: EnvPool,
    draws: Sequence[TaskDraw],
    policy: AuditPolicy,
    options: TruthOptions = TruthOptions(),
    *,
    seed: int = 0,
    on_finish: OnFinish = lambda _: None,
) -> tuple[Truth, list[Rollout]]:
    """Play groups of rollouts and measure the true advantage of each of their turns.

    Args:
        pool: Gives the environments.
        draws: The tasks; a group plays each.
        policy: Plays the rollouts and the continuations.
        options: What is measured.
        seed: Of all decisions. Equal arguments give equal truth if the policy's answers depend on
            prompt and seed alone.
        on_finish: Is called with each rollout once its group has ended.

    Returns:
        The truth, and the rollouts that it is of, without those that were lost.

    Raises:
        TrainingError: Every group was lost.
    """
    begun, measured = time.perf_counter(), _Measurement(policy, options, seed)
    played = await collect_episodes(
        pool, draws, measured.play, options=CollectOptions(on_finish=on_finish)
    )
    rollouts = [rollout for rollout in played if rollout.turns and not rollout.error]
    if not rollouts:
        why = next((rollout.error for rollout in played), "there are no tasks")
        raise TrainingError(f"every episode of the audit was lost: {why}")
    measured.cost.seconds = time.perf_counter() - begun
    table = TurnTable.from_rollouts(
        rollouts, reward=options.reward, reward_scale=options.reward_scale
    )
    returns = np.concatenate([measured.returns_of(rollout) for rollout in rollouts])
    taken, equal = measured.chances_of(rollouts)
    known = measured.known_of(rollouts)
    return Truth(table, returns, options, measured.cost, taken, equal, known), rollouts


class _Measurement:
    """Plays episodes, and on from each of their states."""

    def __init__(self, policy: AuditPolicy, options: TruthOptions, seed: int) -> None:
        self._policy, self._options, self._seed = policy, options, seed
        self._shared: dict[tuple[int, int, str, str], asyncio.Future[Floats]] = {}
        self._actors: dict[tuple[int, int], _MeasuredActor] = {}
        self.cost = Cost()

    async def play(self, episode: Episode) -> Rollout:
        """Play an episode, measuring before each of its turns."""
        actor = _MeasuredActor(self._policy, self.from_here, episode)
        self._actors[episode.group, episode.member] = actor  # in place of one that failed
        return await run_episode(episode, actor, seed=self._seed)

    def returns_of(self, rollout: Rollout) -> Floats:
        """Return the returns from each state of a rollout. Shape [T, K]."""
        return np.stack(self._actors[rollout.group, rollout.member].returns[: len(rollout.turns)])

    def chances_of(self, rollouts: Sequence[Rollout]) -> tuple[Floats | None, Floats | None]:
        """Return the columns `taken` and `equal`; None if a turn's probabilities are unknown."""
        chances = [
            one
            for rollout in rollouts
            for one in self._actors[rollout.group, rollout.member].chances[: len(rollout.turns)]
        ]
        known = [one for one in chances if one is not None]
        if len(known) < len(chances):
            return None, None
        return np.array([one.taken for one in known]), np.array([one.equal for one in known])

    def known_of(self, rollouts: Sequence[Rollout]) -> Ints | None:
        """Return the column `known`; None if the policy knows the state alone."""
        known = [
            one
            for rollout in rollouts
            for one in self._actors[rollout.group, rollout.member].known[: len(rollout.turns)]
        ]
        names = np.array(known, dtype=object)
        return np.unique(names, return_inverse=True)[1].astype(np.int64) if any(known) else None

    async def from_here(self, episode: Episode, known: str) -> Floats:
        """Return the returns of the continuations from an episode's state. Shape [K].

        Args:
            episode: In this state.
            known: What the policy knows beside it.
        """
        turn = int(episode.info["turn"])
        key = (episode.group, turn, str(episode.info["state_key"]), known)
        if key not in self._shared:
            self._shared[key] = asyncio.ensure_future(self._play_on(episode, key))
        try:
            return await self._shared[key]
        except BaseException:
            self._shared.pop(key, None)  # an episode that is played again asks anew
            raise

    async def _play_on(self, episode: Episode, key: tuple[int, int, str, str]) -> Floats:
        group, turn, state, known = key
        digest = blake2b(f"{state}\0{known}".encode("utf-8", "surrogatepass"), digest_size=6)
        name = int.from_bytes(digest.digest(), "big")
        count = self._options.continuations
        seeds = [seed_of(self._seed, _CONTINUATIONS, group, turn, name, k) for k in range(count)]
        played = await self._policy.play_on(episode, seeds)
        self.cost.continuations += count
        self.cost.steps += sum(len(one.rewards) for one in played)
        self.cost.tokens += sum(one.usage.prompt + one.usage.response for one in played)
        return np.array([self._return_of(one) for one in played])

    def _return_of(self, played: Continuation) -> float:
        own = played.rewards
        if self._options.reward != "environment":
            at_end = played.success if self._options.reward == "success" else played.score
            own = (*(0.0,) * (len(own) - 1), float(at_end))
        return float(sum(reward * self._options.gamma**i for i, reward in enumerate(own)))


class _MeasuredActor:
    """The policy as the actor of one episode that measures each state before it decides.

    Attributes:
        returns: Those from each state so far. [K] each.
        known: What the policy knew beside each state.
        chances: The policy's probabilities there.
    """

    def __init__(
        self,
        policy: AuditPolicy,
        measure_state: Callable[[Episode, str], Awaitable[Floats]],
        episode: Episode,
    ) -> None:
        self._policy, self._measure_state, self._episode = policy, measure_state, episode
        self.returns: list[Floats] = []
        self.known: list[str] = []
        self.chances: list[Chances | None] = []

    async def act(self, view: EpisodeView, seed: int) -> Decision:
        """Take the next turn; states in which the partner's seat acts are not measured."""
        own = not is_partners(view.info)
        if own:
            self.known.append(self._policy.key(self._episode))
            self.returns.append(await self._measure_state(self._episode, self.known[-1]))
        decision = await self._policy.act(self._episode, view, seed)
        if own:
            self.chances.append(self._policy.chances(self._episode, decision.action))
        return decision
