"""The measured truth: equal to exact enumeration, repeated by its seeds, shared by state."""

import asyncio
import math
from functools import lru_cache

import gymnasium as gym
import numpy as np
import pytest

from agentgyms.core import experts
from harness.audit.policies import NoisyExpert
from harness.audit.truth import Truth, TruthOptions, measure
from harness.credit.table import TurnTable
from harness.rollouts.env_pool import EnvPool
from harness.types.errors import ConfigError
from harness.types.task_draws import TaskSampler

NOISE = 0.6


def measured(env_id="agentgyms/Corridor-v0", tasks=3, seed=1, noise=NOISE, options=None, **kwargs):
    pool = EnvPool(env_id, 4, 64, **kwargs)
    draws = TaskSampler(pool.tasks(), seed).draw(0, tasks)
    options = options or TruthOptions(64)
    return asyncio.run(measure(pool, draws, NoisyExpert(noise), options, seed=seed))


def exact_value(env, info, success=False, over=False):
    """Return the probability of success from here under the noisy expert, by enumeration."""
    if over:
        return float(success)
    actions = info["admissible_actions"]
    chances = dict.fromkeys(actions, NOISE / len(actions))
    chances[experts.choose(env.expert_actions(), "best")] += 1 - NOISE
    total = 0.0
    for action, chance in chances.items():
        twin = env.fork()
        _, _, terminated, truncated, info = twin.step(action)
        total += chance * exact_value(twin, info, info["success"], terminated or truncated)
    return total


@pytest.fixture(scope="module")
def corridor():
    return measured(max_turns=8)


def test_it_equals_exact_enumeration_within_two_standard_errors(corridor):
    """Of 95 % of the turns, as normal errors do; and on the whole without bias."""
    truth, rollouts = corridor
    env = gym.make("agentgyms/Corridor-v0", max_turns=8).unwrapped

    @lru_cache
    def value(seed, task_id, actions):
        _, info = env.reset(seed=seed, options={"task_id": task_id})
        terminated = truncated = False
        for action in actions:
            _, _, terminated, truncated, info = env.step(action)
        over = terminated or truncated
        return exact_value(env, info, info.get("success", False), over)

    exact = []
    for rollout in rollouts:
        actions = tuple(turn.action for turn in rollout.turns)
        for t in range(len(actions)):
            before, after = (value(rollout.seed, rollout.task_id, actions[:n]) for n in (t, t + 1))
            exact.append(after - before)
    apart = truth.advantage - np.array(exact)
    spread = np.sqrt(0.5 / 64)  # of two means of 64 flips of a coin
    assert np.abs(exact).max() > 0.1
    assert (np.abs(apart) <= 2 * np.maximum(truth.error, 0.02)).mean() > 0.9
    assert abs(apart.mean()) < 3 * spread / np.sqrt(len(apart))


def test_it_knows_the_experts_probabilities(corridor):
    truth, _ = corridor
    assert set(truth.taken.round(9)) <= {0.3, 0.7, 0.2, 0.6}  # of two or three actions
    assert set(truth.equal.round(9)) == {0.58, 0.44}


def test_equal_seeds_give_equal_truth(corridor):
    again, _ = measured(max_turns=8)
    assert (again.returns == corridor[0].returns).all()
    other, _ = measured(max_turns=8, seed=2)
    assert other.returns.shape != again.returns.shape or (other.returns != again.returns).any()


def test_equal_states_share_their_continuations(corridor):
    truth, rollouts = corridor
    first = truth.returns[truth.turns.starts]
    for group in range(3):
        assert (first[group * 4 : group * 4 + 4] == first[group * 4]).all()
    states = {
        (rollout.group, t, turn.state_key)
        for rollout in rollouts
        for t, turn in enumerate(rollout.turns)
    }
    assert truth.cost.continuations == 64 * len(states) < 64 * len(truth.turns)


def test_rollouts_are_those_that_are_played_without_measuring(corridor):
    other, _ = measured(max_turns=8, options=TruthOptions(4))
    assert (other.turns.action_key == corridor[0].turns.action_key).all()


def truth_of(returns, reward, goes_on=2, **options):
    turns = TurnTable.from_columns(rollout=[0] * goes_on + [1], reward=reward)
    return Truth(turns, np.array(returns, float), TruthOptions(4, **options))


def test_advantages_and_errors_by_hand():
    truth = truth_of([[0, 0, 1, 1], [1, 1, 1, 1], [0, 0, 1, 1]], [0, 10, 0], gamma=0.5)
    assert truth.advantage.tolist() == [0.5 * 1 - 0.5, 1 - 1, 0 - 0.5]
    assert truth.error == pytest.approx([math.sqrt(1 / 12), 0.0, math.sqrt(1 / 12)])
    assert truth.advantage_by(np.array([0, 1])).tolist() == [0.5 * 1 - 0, 1 - 1, 0]
    assert truth.advantage_by(np.array([3])).tolist() == [0.5 * 1 - 1, 1 - 1, -1]


@pytest.mark.parametrize(
    ("reward", "gamma"), [("success", 1.0), ("score", 0.9), ("environment", 0.9)]
)
def test_every_reward_is_discounted_from_the_fork_on(reward, gamma):
    """An expert without noise is certain: each of its turns has the advantage 0."""
    options = TruthOptions(4, reward=reward, gamma=gamma)
    truth, rollouts = measured(tasks=2, noise=0.0, options=options)
    assert all(rollout.success for rollout in rollouts)
    assert np.abs(truth.advantage).max() < 1e-9
    assert truth.error.max() == 0
    steps_left = np.concatenate([np.arange(len(r.turns))[::-1] for r in rollouts])
    assert truth.returns[:, 0] == pytest.approx(gamma**steps_left)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"continuations": 6}, "multiple of 4"),
        ({"continuations": 0}, "multiple of 4"),
        ({"reward": "sucess"}, "did you mean success"),
        ({"gamma": 0}, "gamma"),
    ],
)
def test_wrong_options_are_refused(wrong, says):
    with pytest.raises(ConfigError, match=says):
        TruthOptions(**wrong)
