"""Exact values of the states of episodes, in place of the returns of continuations."""

from __future__ import annotations

from typing import Any

import numpy as np

from agentgyms.exact import Model, Values, enumerate_states
from harness.audit.policies import AuditPolicy, NoisyExpert
from harness.rollouts.continuations import REWARDS, Cost
from harness.rollouts.episode import Episode, run_episode
from harness.rollouts.views import Actor, Decision, EpisodeView
from harness.types.errors import ConfigError
from harness.types.hyperparameters import one_of
from harness.types.rollout import Rollout


class ExactReturns:
    """The policy's exact values of the states of episodes; it plays nothing beside them.

    It stands in for `StateReturns`: a rollout gets `state_returns` with `count` equal columns, so
    that its values have no error. Raises `ConfigError` if the policy's probabilities are unknown.
    """

    def __init__(self, policy: AuditPolicy, count: int, reward: str, gamma: float) -> None:
        one_of("reward", reward, REWARDS)
        if not isinstance(policy, NoisyExpert):
            raise ConfigError(
                "exact truth needs a policy whose probabilities are known in every state: the "
                "expert with noise; a model's values are measured by continuations"
            )
        self._policy, self._count = policy, count
        self._reward: Any = reward
        self._gamma = gamma
        self._known: dict[tuple[str, int], tuple[Model, Values]] = {}
        self.cost = Cost()

    async def run(self, episode: Episode, actor: Actor, *, seed: int) -> Rollout:
        """Play an episode as `run_episode` does, with the value of the state before each turn."""
        valuing = _ValuingActor(self, actor, episode)
        rollout = await run_episode(episode, valuing, seed=seed)
        values = valuing.values[: len(rollout.own_turns)]
        if values and not rollout.error:
            rollout.state_returns = np.tile(np.array(values)[:, None], self._count)  # [N, K]
        return rollout

    def value(self, episode: Episode) -> float:
        """Return the value of the state in which an episode stands."""
        env: Any = episode.env
        key = (str(episode.info["task_id"]), episode.draw.seed)
        if key not in self._known:
            model = enumerate_states(env)
            table = self._policy.table(env, model, int(episode.info["turn"]))
            self._known[key] = model, model.evaluate(table, self._reward, self._gamma)
        model, values = self._known[key]
        taken = model.horizon - env.turns_left
        return float(values.value[taken, model.number[env.position]])


class _ValuingActor:
    def __init__(self, returns: ExactReturns, actor: Actor, episode: Episode) -> None:
        self._returns, self._actor, self._episode = returns, actor, episode
        self.values: list[float] = []

    async def act(self, view: EpisodeView, seed: int) -> Decision:
        self.values.append(self._returns.value(self._episode))
        return await self._actor.act(view, seed)
