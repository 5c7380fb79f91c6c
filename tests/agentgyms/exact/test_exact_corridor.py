"""The corridor's transitions against played turns, and its exact values against its solution."""

import gymnasium as gym
import pytest

import agentgyms  # noqa: F401 (registers the environments)
from agentgyms.exact import enumerate_states


@pytest.mark.parametrize("task", ["train/free-000", "train/locked-001"])
def test_transitions_are_those_of_played_turns(task):
    env = gym.make("agentgyms/Corridor-v0", max_turns=9).unwrapped
    env.reset(seed=0, options={"task_id": task})
    model = enumerate_states(env)
    assert env.position == model.states[0]
    for action in ("left", "right", "right", "take key", "right", "left"):
        before, left = env.position, env.turns_left
        if action not in env.actions_in(before):
            continue
        (expected,) = env.transitions(before, action)
        assert env.position == before
        _, reward, over, _, info = env.step(action)
        assert (env.position, reward, over) == (expected.state, expected.reward, expected.over)
        assert env.key_of(env.position) == info["state_key"]
        assert env.turns_left == left - 1
        assert list(model.actions[model.number[env.position]]) == info["admissible_actions"]


@pytest.mark.parametrize("task", ["train/free-000", "train/locked-001"])
def test_the_best_policy_needs_the_turns_of_a_shortest_solution(task):
    env = gym.make("agentgyms/Corridor-v0", max_turns=20).unwrapped
    env.reset(seed=0, options={"task_id": task})
    needed = env.solution()["optimal_remaining"]
    value = enumerate_states(env).optimal().value[:, 0]
    assert value[20 - needed] == 1
    assert value[20 - needed + 1] == 0
