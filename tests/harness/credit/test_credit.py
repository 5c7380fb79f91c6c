"""Turn tables, group statistics, and GRPO and GiGPO by hand; what holds of all is elsewhere."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import turn_tables

from harness import credit
from harness.credit import TurnTable, diagnostics
from harness.credit.estimators.gigpo import gigpo
from harness.credit.estimators.grpo import grpo
from harness.credit.groups import encode, group_mean, group_std, standardise
from harness.credit.shared import rewards_to_go
from harness.types.errors import ConfigError, TableError
from harness.types.rollout import Completion, Rollout, Turn


def two_rollouts():
    """A success in two turns and a failure in three that passes the same two states."""
    return TurnTable.from_columns(
        rollout=[0, 0, 1, 1, 1],
        reward=[0, 10, 0, 0, 0],
        state_key=["a", "b", "a", "a", "b"],
        action_key=["go", "take", "look", "go", "look"],
        valid=[True, True, False, True, True],
    )


def test_a_table_is_trained_on_the_environments_reward_on_success_or_on_the_score():
    def turn(reward):
        return Turn("o", "s", Completion("x"), "x", "x", "ok", reward, "o", "t", 0.0)

    half = Rollout("a", "f", 0, 0, 0, turns=[turn(0.0), turn(0.5)], score=0.5)
    whole = Rollout("a", "f", 0, 1, 0, turns=[turn(0.25), turn(0.75)], success=True, score=1.0)
    table = TurnTable.from_rollouts([half, whole], reward_scale=2.0)
    assert table.reward.tolist() == [0.0, 1.0, 0.5, 1.5]
    table = TurnTable.from_rollouts([half, whole], reward="success", reward_scale=10.0)
    assert table.reward.tolist() == [0.0, 0.0, 0.0, 10.0]
    table = TurnTable.from_rollouts([half, whole], reward="score", reward_scale=2.0)
    assert table.reward.tolist() == [0.0, 1.0, 0.0, 2.0]
    with pytest.raises(ConfigError, match="unknown reward 'points': expected one of environment"):
        TurnTable.from_rollouts([half], reward="points")


def test_grpo_by_hand():
    # Returns 10 and 0: mean 5, sample std sqrt(50), so +-5 / sqrt(50) = +-0.7071.
    expected = 5 / (math.sqrt(50) + 1e-6)
    np.testing.assert_allclose(grpo(two_rollouts()), [expected] * 2 + [-expected] * 3)
    np.testing.assert_allclose(
        grpo(two_rollouts(), ddof=0), [5 / (5 + 1e-6)] * 2 + [-5 / (5 + 1e-6)] * 3
    )
    np.testing.assert_allclose(grpo(two_rollouts(), norm="mean"), [5, 5, -5, -5, -5])


def test_grpo_with_turn_statistics_by_hand():
    # Row scores 10, 10, 0 - 0.1, 0, 0: mean 3.98.
    got = grpo(two_rollouts(), norm="mean", statistics="turn")
    np.testing.assert_allclose(got, [6.02, 6.02, -4.08, -3.98, -3.98])


def test_gigpo_by_hand():
    # Step returns: 9.5, 10 | -0.1 (invalid), 0, 0. State a: 9.5, -0.1, 0; state b: 10, 0.
    mean_a = (9.5 - 0.1) / 3
    step = np.array([9.5 - mean_a, 5, -0.1 - mean_a, -mean_a, -5])
    np.testing.assert_allclose(
        gigpo(two_rollouts(), norm="mean"), np.array([5, 5, -5, -5, -5]) + step
    )
    std_a = np.std([9.5, -0.1, 0], ddof=1)
    std_b = np.std([10, 0], ddof=1)
    scaled = step / (np.array([std_a, std_b, std_a, std_a, std_b]) + 1e-6)
    np.testing.assert_allclose(gigpo(two_rollouts()), grpo(two_rollouts()) + scaled)


def test_a_state_visited_once_and_a_group_of_one_get_nothing():
    table = TurnTable.from_columns(rollout=[0, 0], reward=[0, 10], state_key=["a", "b"])
    assert gigpo(table).tolist() == [0, 0]
    assert grpo(table).tolist() == [0, 0]


def test_groups_are_never_mixed():
    one = two_rollouts()
    both = TurnTable.from_columns(
        rollout=[*one.rollout, *(one.rollout + 2)],
        group=[0] * 5 + [1] * 5,
        reward=[*one.reward, *(one.reward * 3)],
        state_key=[*one.state_key, *one.state_key],
        valid=[*one.valid, *one.valid],
    )
    np.testing.assert_allclose(gigpo(both)[:5], gigpo(one))


def test_rewards_to_go_by_hand():
    reward, rollout = np.array([1.0, 2, 4, 8]), np.array([0, 0, 0, 1])
    assert rewards_to_go(reward, rollout, 0.5).tolist() == [3.0, 4.0, 4.0, 8.0]


def test_labels_agree_exactly_when_all_columns_do():
    first, second = np.array([0, 0, 1, 1, 0]), np.array(["x", "y", "x", "x", "x"], dtype=object)
    label = encode(first, second)
    equal = label[:, None] == label
    np.testing.assert_array_equal(equal, (first[:, None] == first) & (second[:, None] == second))


@given(turn_tables())
def test_gigpo_without_steps_is_grpo(table):
    np.testing.assert_array_equal(gigpo(table, step_weight=0.0), grpo(table))


@given(turn_tables())
def test_the_step_part_of_gigpo_sums_to_zero_in_every_state(table):
    step = gigpo(table, norm="mean") - grpo(table, norm="mean")
    sums = np.bincount(encode(table.group, table.state_key), weights=step)
    np.testing.assert_allclose(sums, 0, atol=1e-9)


@given(st.lists(st.floats(-100, 100, width=16), min_size=1, max_size=12), st.sampled_from([0, 1]))
def test_group_statistics_agree_with_numpy(values, ddof):
    x = np.array(values)
    label = np.zeros(len(x), np.int64)
    np.testing.assert_allclose(group_mean(x, label), x.mean(), atol=1e-9)
    if len(x) > ddof:
        np.testing.assert_allclose(group_std(x, label, ddof), x.std(ddof=ddof), atol=1e-9)


def test_rounding_errors_are_not_blown_up_to_signals():
    x = np.array([0.1 + 0.2, 0.3, 0.3])
    assert standardise(x, np.zeros(3, np.int64), norm="std", ddof=1, eps=1e-6).tolist() == [0, 0, 0]


def test_unknown_names_and_wrong_settings_are_refused():
    with pytest.raises(
        ConfigError, match="unknown estimator 'gippo': expected one of .*gigpo, .*grpo"
    ):
        credit.get("gippo")
    with pytest.raises(
        ConfigError, match="has no hyperparameter 'gama': expected step_weight, similarity, norm"
    ):
        credit.check("gigpo", {"gama": 0.9})
    for wrong in ({"norm": "max"}, {"ddof": 2}, {"statistics": "group"}):
        with pytest.raises(ConfigError):
            gigpo(two_rollouts(), **wrong)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"rollout": [0, 1, 0], "reward": [0, 0, 0]}, "contiguous rows; row 2"),
        ({"rollout": [1, 1], "reward": [0, 0]}, "numbered 0, 1, 2"),
        ({"rollout": [0, 0], "reward": [0]}, "reward has shape|reward \\(1,\\)"),
        ({"rollout": [0, 0], "reward": [0, float("nan")]}, "reward is nan in row 1"),
        ({"rollout": [0], "reward": [0], "turn": [3]}, "row 0 is turn 3, expected turn 0"),
        ({"rollout": [0, 0], "reward": [0, 0], "group": [0, 1]}, "group differs between rows"),
        ({"rollout": [0], "reward": [0], "colour": ["red"]}, "unknown column 'colour'"),
        ({"rollout": [0]}, "column 'reward' is missing"),
        ({"rollout": [0], "reward": ["much"]}, "column 'reward' cannot be read"),
        ({"rollout": [0], "reward": ["1.5"]}, "column 'reward' cannot be read"),
        ({"rollout": [0], "reward": [[1.0], [2.0, 3.0]]}, "column 'reward' cannot be read"),
        ({"rollout": 0, "reward": [0]}, "rollout has shape"),
        ({"rollout": [10**12], "reward": [0]}, "numbered 0, 1, 2.*row 0 has rollout 1000"),
        ({"rollout": [-1, 0], "reward": [0, 0]}, "numbered 0, 1, 2.*row 0 has rollout -1"),
        ({"rollout": [0.5, 1.2], "reward": [0, 0]}, "'rollout' cannot be read: .*whole numbers"),
        ({"rollout": [0, math.inf], "reward": [0, 0]}, "'rollout' cannot be read: .*whole"),
        ({"rollout": [False], "reward": [0]}, "'rollout' cannot be read: .*whole numbers"),
        ({"rollout": ["0"], "reward": [0]}, "'rollout' cannot be read: .*numbers"),
        ({"rollout": [0, 1], "reward": [0, 0], "group": [0.5, 0.7]}, "'group' .*whole numbers"),
        ({"rollout": [0], "reward": [0], "success": ["False"]}, "'success' .*numbers"),
        ({"rollout": [0], "reward": [0], "valid": [0.5]}, "'valid' .*true or false"),
        ({"rollout": [0], "reward": [0], "failed": [None]}, "'failed' cannot be read"),
        ({"rollout": [0], "reward": [0], "state_key": [None]}, "'state_key' .*strings.*row 0"),
        ({"rollout": [0, 0], "reward": [0, 0], "text": ["a", {}]}, "'text' .*strings.*row 1"),
    ],
)
def test_tables_that_do_not_fit_are_refused(columns, message):
    with pytest.raises(TableError, match=message):
        TurnTable.from_columns(**columns)


def test_whole_numbers_may_be_keys_and_flags():
    table = TurnTable.from_columns(
        rollout=[0.0, 0.0, 1.0], reward=[0, 1, 2], state_key=[1, "1", 2], valid=[1, 0, 1.0]
    )
    assert table.rollout.tolist() == [0, 0, 1]
    assert table.state_key.tolist() == ["1", "1", "2"]
    assert table.valid.tolist() == [True, False, True]


def test_verl_agents_rule_for_groups_of_one_is_a_choice():
    table = TurnTable.from_columns(rollout=[0, 1, 2], group=[0, 1, 1], reward=[10, 3, 5])
    root = math.sqrt(2) + 1e-6
    np.testing.assert_allclose(grpo(table), [0, -1 / root, 1 / root])
    raw = grpo(table, singleton="raw")
    np.testing.assert_allclose(raw, [10 / (1 + 1e-6), -1 / root, 1 / root], rtol=1e-12)
    np.testing.assert_array_equal(gigpo(table, singleton="raw"), raw)
    assert grpo(table, singleton="raw", norm="mean").tolist() == [10, -1, 1]
    # One rollout of two turns has two scores where rows are counted, one where rollouts are.
    alone = TurnTable.from_columns(rollout=[0, 0], reward=[0, 4], valid=[True, False])
    assert grpo(alone, singleton="raw", norm="mean").tolist() == [4, 4]
    rows = grpo(alone, singleton="raw", norm="mean", statistics="turn")
    np.testing.assert_allclose(rows, [0.05, -0.05])


def test_diagnostics_by_hand():
    table = two_rollouts()
    assert diagnostics.silent_groups(table) == 0.0
    assert diagnostics.shared_states(table) == 1.0
    alone = TurnTable.from_columns(rollout=[0, 0, 1], reward=[0, 0, 0], state_key=["a", "a", "b"])
    assert diagnostics.shared_states(alone) == 0.0
    assert diagnostics.repeated_states(alone) == pytest.approx(2 / 3)
    assert diagnostics.silent_groups(alone) == 1.0
