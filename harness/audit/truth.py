"""The true advantage of every turn, measured by continuations from forks of its episode.

With pi the policy that played, s the environment's state and h the policy's other knowledge, V(s,
h) is the mean return of K continuations from a fork right before the turn, in which the turn's
action is drawn anew. The advantage of turn t is A = r_t + gamma V(s_t+1, h_t+1) - V(s_t, h_t), with
V = 0 after the end. Equal states with equal h and as many turns left share their continuations.
Where an environment knows its transitions and the policy its probabilities, V can be exact instead.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from harness.audit.exact_returns import ExactReturns
from harness.audit.policies import AuditPolicy, Chances
from harness.credit.table import TurnTable
from harness.rollouts.collect import collect_episodes
from harness.rollouts.continuations import REWARDS, Cost, StateReturns
from harness.rollouts.env_pool import EnvPool
from harness.rollouts.episode import Episode
from harness.rollouts.groups import CollectOptions
from harness.rollouts.self_play import is_partners
from harness.rollouts.views import Decision, EpisodeView
from harness.types.arrays import Floats, Ints
from harness.types.errors import ConfigError, TrainingError
from harness.types.hyperparameters import unknown
from harness.types.rollout import OnFinish, Rollout
from harness.types.task_draws import TaskDraw

_ROUNDING: Final = 1e-12
"""Share of the largest return; a smaller advantage is rounding noise."""


@dataclass(frozen=True, slots=True)
class TruthOptions:
    """The options of a measurement; a value out of its range raises `ConfigError`."""

    continuations: int = 48  # K; a multiple of 4: the ceiling compares quarters
    reward: str = "success"  # one of `REWARDS`, for truth and methods
    gamma: float = 1.0  # discount of each later turn, in (0, 1]
    reward_scale: float = 10.0  # for the methods; the papers train on 10
    # Values by `agentgyms.exact` in place of continuations, whose number counts equal columns then.
    exact: bool = False

    def __post_init__(self) -> None:
        if self.continuations < 4 or self.continuations % 4:
            raise ConfigError(
                f"continuations must be a positive multiple of 4, got {self.continuations}"
            )
        if self.reward not in REWARDS:
            raise ConfigError(unknown("reward", self.reward, REWARDS))
        if not 0 < self.gamma <= 1:
            raise ConfigError(f"gamma must be in (0, 1], got {self.gamma}")


@dataclass(frozen=True, eq=False)
class Truth:
    """Rollouts with the returns of continuations from every state."""

    turns: TurnTable  # N rows
    returns: Floats  # [N, K] of the continuations from right before each turn
    options: TruthOptions
    cost: Cost = field(default_factory=Cost)
    taken: Floats | None = None  # [N] probability of each turn's action; None if unknown
    equal: Floats | None = None  # [N] probability of drawing one action twice; None if unknown
    known: Ints | None = None  # [N] number of the policy's other knowledge; None for none
    # [N, D] gradient of each action, see `parameter_gradients`
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
        size = max(np.abs(reward).max(initial=0.0), np.abs(self.returns).max(initial=0.0))
        return np.where(np.abs(advantage) <= _ROUNDING * size, 0.0, advantage)

    def half(self, which: int) -> Truth:
        """Return the truth by every second continuation, from number 0 or 1 on."""
        return replace(self, returns=self.returns[:, which::2])

    def credited(self) -> TurnTable:
        """Return the turns with `state_value` by the first half, in units of their rewards.

        Compare credit that reads it with the second half, whose errors are independent.
        """
        value = self.options.reward_scale * self.half(0).returns.mean(axis=1)
        return replace(self.turns, state_value=value)

    def _after(self, before: Floats) -> Floats:
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

    A group plays each draw. Equal arguments give equal truth if the policy's answers depend on
    prompt and seed alone. `on_finish` is called with each rollout once its group has ended. Lost
    rollouts are left out; raises `TrainingError` if every group was lost.
    """
    begun, audited = time.perf_counter(), _Audited(policy, options, seed)
    played = await collect_episodes(
        pool, draws, audited.play, options=CollectOptions(on_finish=on_finish)
    )
    rollouts = [rollout for rollout in played if rollout.turns and not rollout.error]
    if not rollouts:
        why = next((rollout.error for rollout in played), "there are no tasks")
        raise TrainingError(f"every episode of the audit was lost: {why}")
    cost = replace(audited.returns.cost, seconds=time.perf_counter() - begun)
    table = TurnTable.from_rollouts(
        rollouts, reward=options.reward, reward_scale=options.reward_scale
    )
    measured = [one.state_returns for one in rollouts if one.state_returns is not None]
    taken, equal = audited.chances_of(rollouts)
    known = audited.known_of(rollouts)
    returns = np.concatenate(measured)
    return Truth(table, returns, options, cost, taken, equal, known), rollouts


class _Audited:
    def __init__(self, policy: AuditPolicy, options: TruthOptions, seed: int) -> None:
        self._policy, self._seed = policy, seed
        self._actors: dict[tuple[int, int], _EpisodeActor] = {}
        count, reward, gamma = options.continuations, options.reward, options.gamma
        self.returns: StateReturns | ExactReturns = (
            ExactReturns(policy, count, reward, gamma)
            if options.exact
            else StateReturns(policy, count, reward, gamma)
        )

    async def play(self, episode: Episode) -> Rollout:
        actor = _EpisodeActor(self._policy, episode)
        self._actors[episode.group, episode.member] = actor  # in place of one that failed
        return await self.returns.run(episode, actor, seed=self._seed)

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
        names = np.array(known, dtype=object)  # [N]; numbers are shorter than the texts
        return np.unique(names, return_inverse=True)[1].astype(np.int64) if any(known) else None


class _EpisodeActor:
    """The policy as the actor of one episode; it notes its knowledge and chances at each turn."""

    def __init__(self, policy: AuditPolicy, episode: Episode) -> None:
        self._policy, self._episode = policy, episode
        self.known: list[str] = []
        self.chances: list[Chances | None] = []

    async def act(self, view: EpisodeView, seed: int) -> Decision:
        is_policys = not is_partners(view.info)
        if is_policys:
            self.known.append(self._policy.key(self._episode))
        decision = await self._policy.act(self._episode, view, seed)
        if is_policys:
            self.chances.append(self._policy.chances(self._episode, decision.action))
        return decision
