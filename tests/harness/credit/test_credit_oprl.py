"""OPRL: numbers worked by hand, its ablations, identities."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import permuted, turn_tables

from harness import credit
from harness.credit import TurnTable
from harness.credit.estimators.grpo import grpo
from harness.credit.estimators.oprl import oprl
from harness.credit.estimators.rloo import rloo
from harness.credit.tokens import by_turn, token_table
from harness.types.errors import ConfigError, TableError

BASES = ("grpo", "rloo", "dr_grpo", "reinforce_pp")


def two_groups():
    """A group of two rollouts of one and three turns, and one of one rollout."""
    return TurnTable.from_columns(
        rollout=[0, 1, 1, 1, 2, 2],
        group=[0, 0, 0, 0, 1, 1],
        reward=[1, 0, 0, 0, 0, 1],
        process_reward=[0.5, 0.1, -0.3, 0.1, 2.0, 4.0],
    )


def test_by_hand():
    # Process rewards of the first group: 0.5, 0.1, -0.3, 0.1, mean 0.1; deviations 0.4, 0, -0.4, 0.
    step = np.array([0.4, 0, -0.4, 0]) / (np.sqrt(0.32 / 3) + 1e-6)
    alone = np.array([-1, 1]) / (np.sqrt(2) + 1e-6)
    expected = grpo(two_groups()) + np.concatenate([step, alone])
    np.testing.assert_allclose(oprl(two_groups()), expected)
    half = grpo(two_groups())[:4] + 0.5 * step
    np.testing.assert_allclose(oprl(two_groups(), alpha=0.5)[:4], half)
    population = np.array([0.4, 0, -0.4, 0]) / (np.sqrt(0.08) + 1e-6)
    expected = grpo(two_groups(), ddof=0)[:4] + population
    np.testing.assert_allclose(oprl(two_groups(), ddof=0)[:4], expected)


def test_other_readings_of_the_step_part_by_hand():
    def step(norm):
        return oprl(two_groups(), base="rloo", step_norm=norm) - rloo(two_groups())

    np.testing.assert_allclose(step("mean"), [0.4, 0, -0.4, 0, -1, 1], atol=1e-12)
    # The others' mean is (sum - own) / 3, so the distance from it is 4/3 of that from the mean.
    others = [0.5 - (0.1 - 0.3 + 0.1) / 3, 0, -0.3 - (0.5 + 0.1 + 0.1) / 3, 0, -2, 2]
    np.testing.assert_allclose(step("rloo"), others, atol=1e-12)
    # First turns have 0.5 and 0.1, mean 0.3, two rollouts; the rollout alone has none to compare.
    first = [0.4, -0.4, -1.2, -0.4, 0, 0]
    np.testing.assert_allclose(step("rloo_first"), first, atol=1e-12)


def test_merged_rewards_are_added_before_the_advantage():
    # Returns 1 + 0.5 and 0 + 0.1 - 0.3 + 0.1 = -0.1, so 0.8 about their mean; a rollout alone: 0.
    got = oprl(two_groups(), fusion="reward", base="dr_grpo")
    np.testing.assert_allclose(got, [0.8, -0.8, -0.8, -0.8, 0, 0], atol=1e-12)
    got = oprl(two_groups(), fusion="reward", alpha=2.0, base="rloo")
    np.testing.assert_allclose(got, [2.2, -2.2, -2.2, -2.2, 0, 0], atol=1e-12)


def test_token_level_process_rewards():
    # Turns of 1, 2, 1, 1 and 1, 1 tokens: means and deviations are over the group's five tokens.
    lengths = np.array([1, 2, 1, 1, 1, 1])
    reward = np.array([0.5, 0.2, -0.1, -0.3, 0.2, 2.0, 4.0])
    tokens = token_table(two_groups(), lengths, process_reward=reward)
    got = by_turn(oprl(tokens), lengths)
    episode = grpo(two_groups())
    first = reward[:5]
    step = (first - first.mean()) / (first.std(ddof=1) + 1e-6)
    assert [len(a) for a in got] == lengths.tolist()
    np.testing.assert_allclose(got[0], episode[0] + step[:1])
    np.testing.assert_allclose(got[1], episode[1] + step[1:3])
    np.testing.assert_allclose(got[3], episode[3] + step[4:])


@settings(max_examples=30)
@given(turn_tables(), st.sampled_from(BASES))
def test_without_weight_it_is_its_base(table, base):
    np.testing.assert_array_equal(oprl(table, alpha=0.0, base=base), credit.get(base)(table))
    merged = oprl(table, alpha=0.0, base=base, fusion="reward")
    np.testing.assert_array_equal(merged, credit.get(base)(table))


@settings(max_examples=30)
@given(turn_tables(), st.sampled_from(["std", "mean", "rloo"]))
def test_the_step_part_sums_to_zero_in_every_group(table, norm):
    step = oprl(table, step_norm=norm) - grpo(table)
    np.testing.assert_allclose(np.bincount(table.group, weights=step), 0, atol=1e-8)


@settings(max_examples=30)
@given(turn_tables(), st.floats(-3, 3, width=16))
def test_a_constant_added_to_every_process_reward_changes_nothing(table, constant):
    shifted = replace(table, process_reward=table.process_reward + constant)
    for norm in ("std", "mean", "rloo", "rloo_first"):
        got, expected = oprl(shifted, step_norm=norm), oprl(table, step_norm=norm)
        np.testing.assert_allclose(got, expected, atol=1e-9)


@settings(max_examples=30)
@given(turn_tables(), st.randoms(), st.sampled_from(BASES))
def test_the_order_of_rollouts_does_not_matter(table, random, base):
    order = list(range(len(table.starts)))
    random.shuffle(order)
    shuffled, rows = permuted(table, order)
    for chosen in ({}, {"step_norm": "rloo_first"}, {"fusion": "reward"}):
        got, expected = oprl(shuffled, base=base, **chosen), oprl(table, base=base, **chosen)
        np.testing.assert_allclose(got, expected[rows], atol=1e-6)


def test_the_base_keeps_what_it_is_given():
    table = two_groups()
    step = oprl(table, step_weight=0.0, base="gigpo", ddof=0) - grpo(table, ddof=0)
    np.testing.assert_allclose(step, oprl(table, ddof=0) - grpo(table, ddof=0), atol=1e-12)
    mapping = oprl(table, base={"name": "grpo", "ddof": 0})
    np.testing.assert_allclose(mapping - grpo(table, ddof=0), oprl(table) - grpo(table))


def test_missing_rewards_empty_tables_and_wrong_settings():
    with pytest.raises(TableError, match="process_reward"):
        oprl(TurnTable.from_columns(rollout=[0], reward=[1]))
    empty = TurnTable.from_columns(rollout=[], reward=[], process_reward=[])
    for norm in ("std", "mean", "rloo", "rloo_first"):
        assert oprl(empty, step_norm=norm).shape == (0,)
    for wrong in (
        {"alpha": float("nan")},
        {"step_norm": "max"},
        {"fusion": "both"},
        {"ddof": 2},
        {"ddof": 2, "base": "rloo"},  # which has none itself
        {"eps": -1},
        {"gamma": 0.9},
    ):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            oprl(two_groups(), **wrong)
