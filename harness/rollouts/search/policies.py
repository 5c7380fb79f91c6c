"""The policy and the values of a tree search, behind `Proposals` and `StateValue`."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Callable
from typing import Protocol

from harness.rollouts.agent import Agent, choices_of
from harness.rollouts.episode import Episode, take_turn
from harness.rollouts.search.budget import Budget
from harness.rollouts.views import Actor, Decision
from harness.types.errors import ConfigError, ContextOverflow
from harness.types.messages import texts_of
from harness.types.rollout import Completion
from harness.types.task_draws import seed_of

StateValue = Callable[[Episode, int], Awaitable[float]]
"""Returns the value, in [0, 1], of an episode's state, from the episode and a seed.

The value estimates the score at the end, times the discount of each turn until then. It may play
on: the episode is a copy, and the search restores the environment afterwards."""


class Proposals(Protocol):
    """The policy of a search: actions and their priors, by state; `agent` writes the prompts."""

    agent: Agent

    def key(self, episode: Episode) -> str:
        """Return the policy's knowledge beside the state; equal keys have equal proposals."""
        ...

    async def propose(self, episode: Episode, seed: int) -> list[tuple[Decision, float]]:
        """Return different actions, at least one, with their probabilities."""
        ...


class SampledProposals:
    """Actions that a model samples; the prior is the share of `width` answers with the action."""

    def __init__(self, agent: Agent, width: int) -> None:
        self.agent, self._width = agent, width

    def key(self, episode: Episode) -> str:
        """Return the text of the next prompt."""
        return "\n".join(texts_of(self.agent.messages(episode.view())))

    async def propose(self, episode: Episode, seed: int) -> list[tuple[Decision, float]]:
        """Return the different actions of `width` answers, the first answer of each.

        Raises `BudgetSpent`, `ContextOverflow` or `ModelUnavailable`.
        """
        view = episode.view()
        asked = [self.agent.act(view, seed_of(seed, k)) for k in range(self._width)]
        answered = await asyncio.gather(*asked, return_exceptions=True)
        found: dict[tuple[str, bool], Decision] = {}
        shares: dict[tuple[str, bool], float] = {}
        for one in answered:
            if isinstance(one, BaseException):
                raise one
            action = one.action, one.valid
            found.setdefault(action, one)
            shares[action] = shares.get(action, 0.0) + 1 / self._width
        return [(found[action], shares[action]) for action in found]


class UniformProposals:
    """All admissible actions, equally likely: the prior of a policy without a model."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    def key(self, episode: Episode) -> str:
        """Return "": it knows the state alone."""
        return ""

    async def propose(self, episode: Episode, seed: int) -> list[tuple[Decision, float]]:
        """Return the admissible actions; raise `ConfigError` if the environment lists none."""
        view = episode.view()
        choices = list(dict.fromkeys(choices_of(view)))
        if not choices:
            raise ConfigError(
                f"{episode.pool.env_id} lists no admissible actions, and agent.kind 'mcts' without "
                "a model tries these: give a model, which proposes its own"
            )
        self.agent.messages(view)  # the decisions keep the prompt
        answers = [self.agent.style.answer(action, choices) for action in choices]
        decided = [self.agent.decide(view, Completion(a)) for a in answers]
        return [(decision, 1 / len(choices)) for decision in decided]


def rollout_value(actor: Actor, budget: Budget, discount: float) -> StateValue:
    """Return the discounted score of one episode played on; the budget pays for its steps alone."""

    async def value(episode: Episode, seed: int) -> float:
        rollout, over = episode.rollout, False
        before = len(rollout.turns)
        try:
            while not over:
                budget.take_step()
                over = await take_turn(episode, actor, seed)
        except ContextOverflow:
            return 0.0
        return score_of(episode) * discount ** (len(rollout.turns) - before)

    return value


def solver_value(discount: float) -> StateValue:
    """Return the value by the environment's solver: discount ** `optimal_remaining`.

    `optimal_remaining`, in `info["oracle"]`, is the length in turns of a shortest solution. The
    value is 0 if it is negative (no solution is known) or larger than the number of turns left.
    """

    async def value(episode: Episode, _: int) -> float:
        left = json.loads(episode.info.get("oracle") or "{}").get("optimal_remaining")
        if left is None:
            raise ConfigError(
                f"search.value is 'solver', and {episode.pool.env_id} tells no optimal_remaining "
                "in info['oracle']: choose 'rollouts'"
            )
        turns = episode.env.max_turns - int(episode.info["turn"])
        return float(discount**left) if 0 <= left <= turns else 0.0

    return value


def score_of(episode: Episode) -> float:
    """Return the score of an episode that is over, in [0, 1]; 0 where it has none."""
    score = episode.rollout.score
    return 0.0 if math.isnan(score) else score
