"""Exact values: against values by hand, against play, against finite differences."""

import math

import numpy as np
import pytest

from agentgyms import exact
from agentgyms.core.errors import BadOption
from agentgyms.envs.corridor import CorridorEnv
from agentgyms.envs.games.frozen_lake import FrozenLakeEnv
from agentgyms.exact import Transition


class Two:
    """Two states: `go` reaches the second with 3/4, from which `end` pays 2 and solves."""

    max_turns = turns_left = 3
    position = "a"

    def actions_in(self, state):
        return {"a": ("stay", "go"), "b": ("end", "back"), "c": ()}[state]

    def transitions(self, state, action):
        return {
            "stay": (Transition(1.0, "a", reward=0.1),),
            "go": (Transition(0.75, "b"), Transition(0.25, "a")),
            "end": (Transition(1.0, "c", 2.0, True, True, 1.0),),
            "back": (Transition(1.0, "a", -1.0),),
        }[action]

    def key_of(self, state):
        return f"key of {state}"


def lake(**kwargs):
    env = FrozenLakeEnv(**{"max_turns": 12, **kwargs})
    env.reset(seed=0, options={"task_id": "train/4x4-0003"})
    return env


def test_values_by_hand():
    model = exact.enumerate_states(Two())
    assert model.states == ("a", "b", "c")
    assert model.keys[1] == "key of b"
    best = model.optimal()
    a, b = 0, 1
    assert best.value[2, a] == pytest.approx(0.1)
    assert best.value[2, b] == 2
    # two turns left: go, then end or stay
    assert best.action_value[1, a] == pytest.approx([0.1 + 0.1, 0.75 * 2 + 0.25 * 0.1])
    assert best.value[0, a] == pytest.approx(0.75 * 2 + 0.25 * 1.525)
    assert model.optimal("success").value[0, a] == pytest.approx(1 - 0.25**2)
    assert model.optimal("score", gamma=0.5).value[1, a] == pytest.approx(0.5 * 0.75)
    half = model.evaluate(lambda state: [0.5, 0.5])
    assert half.value[2].tolist() == pytest.approx([0.05, 0.5, 0])
    assert half.value[1, a] == pytest.approx(0.5 * (0.1 + 0.05) + 0.5 * (0.75 * 0.5 + 0.25 * 0.05))
    assert half.advantage[1, a] == pytest.approx(half.action_value[1, a] - half.value[1, a])
    assert math.isnan(half.action_value[0, 2, 0])


def test_of_equal_actions_the_fewest_turns():
    env = lake(slippery=False)
    _, info = env.reset(seed=0, options={"task_id": "train/4x4-0003"})
    left, turns = env.optimal_remaining(), 0
    over = False
    while not over:
        _, _, over, _, info = env.step(env.expert_actions()["best"])
        turns += 1
    assert info["success"]
    assert turns == left


def test_a_policys_value_is_its_mean_return():
    env = lake()
    model = exact.enumerate_states(env)
    rng = np.random.default_rng(0)
    policy = rng.dirichlet([1.0] * 4, size=len(model.states)) * model.legal
    expected = model.evaluate(np.where(model.legal, policy, 0.0)).value[0, 0]
    returns = []
    for number in range(1500):
        twin, over = env.fork(), False
        twin.redraw(number)
        while not over:
            row = model.number[twin.position]
            action = model.actions[row][rng.choice(4, p=policy[row])]
            _, reward, terminated, truncated, _ = twin.step(action)
            over = terminated or truncated
        returns.append(reward)
    error = np.std(returns) / math.sqrt(len(returns))
    assert abs(np.mean(returns) - expected) < 3 * error, (np.mean(returns), expected)


def test_visits_and_values_agree():
    model = exact.enumerate_states(lake())
    policy = np.where(model.legal, 0.25, 0.0)
    values, visits = model.evaluate(policy, "success"), model.visits(policy)
    earned = (model.probability * model.rewards["success"]).sum(axis=2)
    assert (visits[..., None] * values.policy * earned).sum() == pytest.approx(values.value[0, 0])
    assert visits.sum(axis=1)[0] == 1
    assert (visits.sum(axis=1) <= 1 + 1e-12).all()


@pytest.mark.parametrize("gamma", [1.0, 0.9])
def test_the_gradient_is_that_of_finite_differences(gamma):
    model = exact.enumerate_states(lake(max_turns=6))
    rng = np.random.default_rng(1)
    shape = (model.horizon, *model.legal.shape)
    logits = rng.normal(size=shape)

    def value(logits):
        return model.evaluate(softmax(logits), "success", gamma).value[0, 0]

    def softmax(logits):
        weights = np.exp(logits) * model.legal
        return weights / np.maximum(weights.sum(axis=-1, keepdims=True), 1e-300)

    found = model.gradient(softmax(logits), "success", gamma)
    for index in map(tuple, rng.integers(0, shape, size=(40, 3))):
        step = np.zeros(shape)
        step[index] = 1e-5
        slope = (value(logits + step) - value(logits - step)) / 2e-5
        assert found[index] == pytest.approx(slope, abs=1e-9)
    tied = rng.normal(size=model.legal.shape)
    whole = model.gradient(softmax(tied), "success", gamma).sum(axis=0)
    step = rng.normal(size=tied.shape)
    slope = (value(tied + 1e-5 * step) - value(tied - 1e-5 * step)) / 2e-5
    assert (whole * step).sum() == pytest.approx(slope, rel=1e-6)
    assert np.abs(whole).max() > 1e-3


def test_no_policy_is_better_than_the_best_one():
    model = exact.enumerate_states(lake())
    best, rng = model.optimal("success"), np.random.default_rng(2)
    for _ in range(20):
        policy = rng.dirichlet([0.3] * 4, size=len(model.states)) * model.legal
        assert (model.evaluate(policy, "success").value <= best.value + 1e-12).all()
    assert (model.evaluate(best.policy, "success").value == best.value).all()
    assert not (best.advantage > 1e-12).any()


def test_from_the_middle_of_an_episode():
    env = lake()
    env.step("left")
    model = exact.enumerate_states(env)
    assert model.horizon == 11
    assert model.states[0] == env.position
    assert model.keys[0] == env._face(env.position).key


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        (lambda state: [1.0], "probabilities for the 4 actions"),
        (lambda state: [0.5, 0.5, 0.5, 0.5], "add up to 1"),
        (lambda state: [1.5, -0.5, 0, 0], "0 or more"),
        (np.zeros((2, 2)), "a policy has shape"),
    ],
)
def test_what_is_no_policy_is_refused(policy, problem):
    with pytest.raises(BadOption, match=problem):
        exact.enumerate_states(lake()).evaluate(policy)


def test_other_errors_are_named():
    with pytest.raises(BadOption, match="CorridorEnv has no exact values"):
        exact.enumerate_states(CorridorEnv())
    with pytest.raises(BadOption, match="more than 5 states"):
        exact.enumerate_states(lake(), max_states=5)
    model = exact.enumerate_states(lake())
    with pytest.raises(BadOption, match="reward 'gold' is unknown"):
        model.optimal("gold")
    with pytest.raises(BadOption, match="gamma"):
        model.optimal(gamma=0)
