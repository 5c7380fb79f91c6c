"""GVPO: the paper's four cases, the additive ablation, identities."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import permuted, turn_tables

from harness import credit
from harness.credit import TurnTable
from harness.credit.estimators.gvpo import gvpo
from harness.types.errors import ConfigError


def three_rollouts(returns):
    """Rollouts of two turns, the first of which failed."""
    return TurnTable.from_columns(
        rollout=[0, 0, 1, 1, 2, 2],
        reward=[0, returns[0], 0, returns[1], 0, returns[2]],
        failed=[True, False] * 3,
    )


def test_the_four_cases():
    # Returns 1, 0.5 and 0 about their mean 0.5: a failed turn of the best rollout gets nothing, of
    # the middle one -b, of the worst (1 + b) times its advantage; turns that worked keep theirs.
    table = three_rollouts([1.0, 0.5, 0.0])
    np.testing.assert_allclose(gvpo(table), [0, 0.5, -0.2, 0, -0.6, -0.5])
    np.testing.assert_allclose(gvpo(table, b=0.5), [0, 0.5, -0.5, 0, -0.75, -0.5])


def test_the_additive_ablation_changes_the_negative_case_alone():
    table = three_rollouts([1.0, 0.5, 0.0])
    got = gvpo(table, shaping="additive")
    np.testing.assert_allclose(got, [0, 0.5, -0.2, 0, -0.7, -0.5])


def test_groups_without_outcome_signal_learn_from_failures():
    np.testing.assert_allclose(gvpo(three_rollouts([1.0, 1.0, 1.0])), [-0.2, 0] * 3)
    alone = TurnTable.from_columns(rollout=[0, 0], reward=[0, 1], failed=[True, False])
    np.testing.assert_allclose(gvpo(alone), [-0.2, 0])


def test_rounding_errors_do_not_choose_the_case():
    # 0.1 + 0.2 exceeds 0.3 by 5e-17, so the "better" rollout's failed turn would get 0.
    table = TurnTable.from_columns(
        rollout=[0, 0, 1, 2, 2, 2],
        reward=[0.1, 0.2, 0.3, 0.05, 0.15, 0.1],
        failed=[True] * 6,
    )
    for base in ("dr_grpo", "rloo", "grpo"):
        np.testing.assert_allclose(gvpo(table, base=base), [-0.2] * 6)


@settings(max_examples=30)
@given(turn_tables(), st.sampled_from(["dr_grpo", "grpo", "rloo", "gigpo"]))
def test_without_failures_it_is_its_base(table, base):
    fine = replace(table, failed=np.zeros(len(table), dtype=np.bool_))
    np.testing.assert_array_equal(gvpo(fine, base=base), credit.get(base)(fine))


@settings(max_examples=30)
@given(turn_tables(), st.floats(0, 2, width=16))
def test_a_failed_turn_never_gains(table, b):
    for shaping in ("cases", "additive"):
        got, before = gvpo(table, b=b, shaping=shaping), credit.get("dr_grpo")(table)
        assert (got[table.failed] <= np.minimum(before[table.failed], 0) + 1e-9).all()
        np.testing.assert_array_equal(got[~table.failed], before[~table.failed])


@settings(max_examples=30)
@given(turn_tables(), st.randoms())
def test_the_order_of_rollouts_does_not_matter(table, random):
    order = list(range(len(table.starts)))
    random.shuffle(order)
    shuffled, rows = permuted(table, order)
    np.testing.assert_allclose(gvpo(shuffled), gvpo(table)[rows], atol=1e-9)


def test_hyperparameters_of_the_base_are_given_beside_its_own():
    table = three_rollouts([1.0, 0.5, 0.0])
    flat = gvpo(table, b=0.1, base="grpo", ddof=0)
    mapping = gvpo(table, b=0.1, base={"name": "grpo", "ddof": 0})
    np.testing.assert_array_equal(flat, mapping)
    assert flat[1] == pytest.approx(0.5 / np.std([1, 0.5, 0]), abs=1e-5)


def test_empty_tables_and_wrong_settings():
    assert gvpo(TurnTable.from_columns(rollout=[], reward=[])).shape == (0,)
    for wrong in ({"b": -0.1}, {"b": float("inf")}, {"shaping": "sum"}, {"gamma": 0.9}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            gvpo(three_rollouts([1, 0, 0]), **wrong)
    with pytest.raises(ConfigError, match="unknown estimator 'gippo'"):
        gvpo(three_rollouts([1, 0, 0]), base="gippo")
