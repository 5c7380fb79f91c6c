"""Measured state values: the credit of `oracle` is the exact one, and costs are counted."""

import asyncio
from functools import cache

import gymnasium as gym
import numpy as np
import pytest

from harness import credit, prompts
from harness.annotators import AnnotatorContext
from harness.annotators.state_values import StateValues, StateValuesSettings
from harness.credit import TurnTable
from harness.inference.completers import Sampling
from harness.rollouts.agent import Agent
from harness.rollouts.collect import collect
from harness.rollouts.continuations import AgentContinuations, StateReturns
from harness.rollouts.env_pool import EnvPool
from harness.rollouts.groups import CollectOptions
from harness.types.errors import ConfigError, ModelUnavailable, TrainingError
from harness.types.rollout import Completion, Usage
from harness.types.task_draws import TaskDraw

ACTIONS = ("right", "right", "right", "left", "take key", "open door")
TURNS = 6


class Dice:
    """A completer that knows no state: it draws one of `ACTIONS`."""

    def __init__(self, fails=()):
        self.calls, self.fails = 0, fails

    async def complete(self, messages, sampling, seed):
        self.calls += 1
        if self.calls in self.fails:
            raise ModelUnavailable("the model is gone")
        action = ACTIONS[np.random.default_rng(seed).integers(len(ACTIONS))]
        return Completion(f"<think>so</think><action>{action}</action>", usage=Usage(3, 2, 1))


def played(count, model=None, gamma=1.0, max_live=64, seed=1):
    """Return rollouts of three short corridors without a lock, and what measured them."""
    pool = EnvPool("agentgyms/Corridor-v0", 6, 64, max_turns=TURNS)
    draws = [TaskDraw(task, 1) for task in SHORT]
    agent = Agent(model or Dice(), prompts.load("think", pool.env_id), Sampling(), 0)

    async def play():
        returns = StateReturns(AgentContinuations(agent, max_live), count, "success", gamma, 10.0)
        options = CollectOptions(run=returns.run, pause_s=0)
        return await collect(pool, draws, agent, seed=seed, options=options), returns

    return asyncio.run(play())


def short_corridors(most=4):
    """Return the tasks that 6 turns may solve."""
    env = gym.make("agentgyms/Corridor-v0").unwrapped
    found = []
    for task in env.tasks:
        env.reset(seed=1, options={"task_id": task})
        if env.save()[0] <= most and env.save()[3]:
            found.append(task)
    return found[:3]


SHORT = short_corridors()


@pytest.fixture(scope="module")
def measured():
    return played(48)


def credited(rollouts, **settings):
    table = TurnTable.from_rollouts(rollouts, reward="success", reward_scale=10.0)
    annotator = StateValues(StateValuesSettings(), AnnotatorContext(None))
    return credit.get("oracle")(annotator.annotate(table, rollouts), **settings)


def exact_advantages(rollout):
    """Return 10 (V(after) - V(before)) of each turn, by enumeration of all that may follow."""
    env = gym.make("agentgyms/Corridor-v0", max_turns=TURNS).unwrapped
    env.reset(seed=rollout.seed, options={"task_id": rollout.task_id})
    values, over, success = [], False, False

    @cache
    def value(length, key_at, place, has_key, is_open, left):
        if is_open or not left:
            return float(is_open)
        total = 0.0
        for action in ACTIONS:
            spot, opened = place, False
            if action in ("left", "right"):
                spot = min(max(place + (1 if action == "right" else -1), 0), length)
            elif action == "open door":
                opened = place == length and has_key
            total += value(length, key_at, spot, has_key, opened, left - 1) / len(ACTIONS)
        return total

    for taken, turn in enumerate(rollout.turns):
        values.append(value(*env.save(), TURNS - taken))
        _, _, terminated, truncated, info = env.step(turn.action)
        over, success = terminated or truncated, info["success"]
    assert over
    return 10 * np.diff([*values, float(success)])


def test_oracle_credit_equals_exact_enumeration_within_two_standard_errors(measured):
    rollouts, _ = measured
    found = credited(rollouts)
    exact = np.concatenate([exact_advantages(rollout) for rollout in rollouts])
    errors = []
    for rollout in rollouts:
        variance = rollout.state_returns.var(axis=1, ddof=1) / rollout.state_returns.shape[1]
        errors.append(np.sqrt(variance + np.append(variance[1:], 0.0)))
    apart = np.abs(found - exact)
    assert np.abs(exact).max() > 1
    assert (apart <= 2 * np.maximum(np.concatenate(errors), 0.3)).mean() > 0.9
    assert np.corrcoef(found, exact)[0, 1] > 0.7


def test_the_episodes_are_those_that_are_played_without_continuations(measured):
    """Continuations take nothing from the episodes' seeds, and enter no rollout."""
    pool = EnvPool("agentgyms/Corridor-v0", 6, 64, max_turns=TURNS)
    agent = Agent(Dice(), prompts.load("think", pool.env_id), Sampling(), 0)
    draws = [TaskDraw(task, 1) for task in SHORT]
    plain = asyncio.run(collect(pool, draws, agent, seed=1))
    assert plain == measured[0]
    assert all(rollout.state_returns is None for rollout in plain)


def test_what_is_played_depends_on_the_seeds_alone_and_not_on_how_many_run_at_once(measured):
    again, _ = played(48, max_live=5)
    for one, other in zip(measured[0], again, strict=True):
        assert (one.state_returns == other.state_returns).all()
    others, _ = played(48, seed=2)
    assert any(a.turns != b.turns for a, b in zip(others, again, strict=True))


def test_equal_states_share_continuations_and_their_cost_is_counted():
    model = Dice()
    rollouts, returns = played(4, model)
    turns = sum(len(rollout.turns) for rollout in rollouts)
    keys = {(r.group, t, turn.state_key) for r in rollouts for t, turn in enumerate(r.turns)}
    assert 4 * len(keys) <= returns.cost.continuations < 4 * turns  # prompts may differ, too
    assert returns.cost.continuations % 4 == 0
    assert returns.cost.steps == model.calls - turns > 0
    assert returns.cost.tokens == 5 * returns.cost.steps
    assert returns.cost.seconds > 0


def test_returns_are_discounted():
    rollouts, _ = played(4, gamma=0.5)
    worth = {0.0, *(10 * 0.5**n for n in range(TURNS))}
    assert set(np.concatenate([r.state_returns.ravel() for r in rollouts])) <= worth


def test_an_episode_whose_continuation_failed_is_played_again():
    rollouts, _ = played(4, Dice(fails=(7,)))
    first, _ = played(4)
    assert [r.error for r in rollouts] == [""] * len(first)
    for one, other in zip(rollouts, first, strict=True):
        assert (one.state_returns == other.state_returns).all()


def test_a_rollout_without_measured_states_has_no_credit(measured):
    rollouts, _ = measured
    table = TurnTable.from_rollouts(rollouts)
    for rollout in rollouts[:1]:
        kept, rollout.state_returns = rollout.state_returns, None
        with pytest.raises(TrainingError, match="played without forks"):
            StateValues(StateValuesSettings(), AnnotatorContext(None)).annotate(table, rollouts)
        rollout.state_returns = kept


def test_a_return_of_an_unknown_reward_is_refused():
    agent = Agent(Dice(), prompts.load("think", "agentgyms/Corridor-v0"), Sampling(), 0)
    with pytest.raises(ConfigError, match="reward must be one of"):
        StateReturns(AgentContinuations(agent), 4, "progress")
