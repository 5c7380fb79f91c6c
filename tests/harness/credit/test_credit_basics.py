"""The baselines' estimators: numbers worked by hand, and what they reduce to."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import turn_tables

from harness.credit import TurnTable
from harness.credit.estimators.dr_grpo import dr_grpo
from harness.credit.estimators.gae import gae, gae_returns
from harness.credit.estimators.gigpo import gigpo
from harness.credit.estimators.grpo import grpo
from harness.credit.estimators.hgpo import hgpo, histories
from harness.credit.estimators.prime import prime
from harness.credit.estimators.reinforce import reinforce
from harness.credit.estimators.reinforce_pp import reinforce_pp
from harness.credit.estimators.rloo import leave_one_out, rloo
from harness.credit.estimators.signals.empg import empg
from harness.credit.estimators.signals.hcapo import hcapo
from harness.credit.groups import encode, group_size, standardise, whiten
from harness.credit.registry import preset
from harness.credit.shared import rewards_to_go
from harness.types.errors import TableError


def three_rollouts(**columns):
    """Returns 3, 0 and 0 of one, two and one turns; the first of the second's is invalid."""
    return TurnTable.from_columns(
        rollout=[0, 1, 1, 2], reward=[3, 0, 0, 0], valid=[True, False, True, True], **columns
    )


def test_dr_grpo_and_rloo_by_hand():
    assert dr_grpo(three_rollouts()).tolist() == [2, -1, -1, -1]
    assert rloo(three_rollouts()).tolist() == [3, -1.5, -1.5, -1.5]
    # Row scores 3, -0.1, 0, 0: mean 0.725.
    rows = np.array([2.275, -0.825, -0.725, -0.725])
    np.testing.assert_allclose(dr_grpo(three_rollouts(), statistics="turn"), rows)
    np.testing.assert_allclose(rloo(three_rollouts(), statistics="turn"), rows * 4 / 3)


def test_reinforce_by_hand():
    assert reinforce(three_rollouts()).tolist() == [3, 0, 0, 0]
    assert reinforce(three_rollouts(), baseline=2.0).tolist() == [1, -2, -2, -2]
    assert reinforce(three_rollouts(), baseline="batch").tolist() == [2, -1, -1, -1]
    rows = reinforce(three_rollouts(), baseline="batch", statistics="turn", invalid_penalty=1.0)
    np.testing.assert_allclose(rows, [2.5, -1.5, -0.5, -0.5])


@given(turn_tables())
def test_rloo_is_dr_grpo_times_n_over_n_less_one(table):
    size = group_size(encode(table.group[table.starts]))[table.rollout]
    expected = dr_grpo(table) * size / np.maximum(size - 1, 1)
    np.testing.assert_array_equal(rloo(table), expected)
    np.testing.assert_array_equal(dr_grpo(table), grpo(table, norm="mean"))


@given(turn_tables(min_size=2, max_groups=1))
def test_rloo_takes_the_rollout_itself_out_of_the_mean(table):
    returns = np.bincount(table.rollout, weights=table.reward)
    for i, start in enumerate(table.starts):
        others = np.delete(returns, i).mean()
        assert rloo(table)[start] == pytest.approx(returns[i] - others, abs=1e-9)


def test_reinforce_pp_by_hand():
    # Rewards to go 1, 1 | 0: mean 2/3, sample std sqrt(1/3).
    table = TurnTable.from_columns(rollout=[0, 0, 1], reward=[0, 1, 0], kl=[1.0, 2.0, 3.0])
    expected = np.array([1, 1, -2]) / 3 / (math.sqrt(1 / 3) + 1e-8)
    np.testing.assert_allclose(reinforce_pp(table), expected)
    # Less 0.1 kl: -0.1, 0.8 | -0.3; to go 0.7, 0.8 | -0.3.
    to_go = np.array([0.7, 0.8, -0.3])
    expected = (to_go - 0.4) / (np.std(to_go, ddof=1) + 1e-8)
    np.testing.assert_allclose(reinforce_pp(table, kl_coefficient=0.1), expected)


def test_reinforce_pp_with_baseline_by_hand():
    # Returns 4, 2 | 1, 1, less their groups' means: 1, -1 | 0, 0; a group of one in addition.
    table = TurnTable.from_columns(
        rollout=[0, 0, 1, 2, 3, 4], group=[0, 0, 0, 1, 1, 2], reward=[0, 4, 2, 1, 1, 9]
    )
    centred = np.array([1, 1, -1, 0, 0])
    expected = (centred - 0.2) / (np.std(centred, ddof=1) + 1e-8)
    got = reinforce_pp(table, baseline=True)
    np.testing.assert_allclose(got[:5], expected)
    assert got[5] == 0
    # Divergence 0.5 a turn: rollout 0 has two turns of it, so 3, 1.5 | 0.5, 0.5.
    table = replace(table, kl=np.full(6, 0.5))
    centred = np.array([0.75, 0.75, -0.75, 0, 0])
    expected = (centred - 0.15) / (np.std(centred, ddof=1) + 1e-8)
    got = reinforce_pp(table, baseline=True, kl_coefficient=1.0)
    np.testing.assert_allclose(got[:5], expected)


def test_reinforce_pp_needs_divergences_only_where_they_count():
    with pytest.raises(TableError, match="kl_coefficient above 0 needs the column 'kl'"):
        reinforce_pp(three_rollouts(), kl_coefficient=0.1)


def test_reinforce_pp_takes_the_penalty_off_rows_with_turn_statistics():
    got = reinforce_pp(three_rollouts(), statistics="turn")
    to_go = np.array([3, -0.1, 0, 0])
    np.testing.assert_allclose(got, (to_go - 0.725) / (np.std(to_go, ddof=1) + 1e-8))


def test_gae_by_hand():
    table = TurnTable.from_columns(
        rollout=[0, 0, 1], reward=[1, 2, 4], value=[0.5, 1.0, 3.0], success=[True] * 3
    )
    # delta 1 + 0.5 * 1 - 0.5 = 1, 2 - 1 = 1 | 4 - 3 = 1; A_0 = 1 + 0.5 * 0.5 * 1.
    assert gae(table, gamma=0.5, lam=0.5).tolist() == [1.25, 1, 1]
    assert gae_returns(table, gamma=0.5, lam=0.5).tolist() == [1.75, 2, 4]
    raw = np.array([1.25, 1, 1])
    white = (raw - raw.mean()) / (np.std(raw, ddof=1) + 1e-8)
    np.testing.assert_allclose(gae(table, gamma=0.5, lam=0.5, whiten=True), white)


@given(turn_tables(), st.floats(0, 1))
def test_gae_with_lambda_one_is_the_return_less_the_value(table, gamma):
    to_go = rewards_to_go(table.reward, table.rollout, gamma)
    np.testing.assert_allclose(gae(table, gamma=gamma), to_go - table.value, atol=1e-9)
    np.testing.assert_allclose(gae_returns(table, gamma=gamma), to_go, atol=1e-9)


def test_gae_returns_need_values():
    with pytest.raises(TableError, match="gae_returns needs the column 'value'"):
        gae_returns(three_rollouts())


def hgpo_table():
    """Two rollouts through a, b and c, b, ending with 2 and 0."""
    return TurnTable.from_columns(
        rollout=[0, 0, 1, 1, 2, 2],
        reward=[0, 2, 0, 0, 0, 1],
        state_key=["a", "b", "c", "b", "a", "b"],
    )


def test_hgpo_by_hand():
    # gamma 1, centred only. k=1: a has 2, 1; b has 2, 0, 1; c is alone. k=2: ab has 2, 1.
    # Weights 2 and 3: b in rollout 0 is (2 * 1 + 3 * 0.5) / 5, in rollout 1 its k=1 alone.
    got = hgpo(hgpo_table(), gamma=1.0, norm="mean", eps=0.0)
    np.testing.assert_allclose(got, [0.5, 0.7, 0, -1, -0.5, (2 * 0 + 3 * -0.5) / 5])
    got = hgpo(hgpo_table(), gamma=1.0, norm="mean", eps=0.0, drop_zero=True)
    np.testing.assert_allclose(got, [0.5, 0.7, 0, -1, -0.5, -0.5])
    # alpha 0 weighs all alike.
    got = hgpo(hgpo_table(), gamma=1.0, norm="mean", eps=0.0, alpha=0.0)
    np.testing.assert_allclose(got, [0.5, 0.75, 0, -1, -0.5, -0.25])


def test_hgpo_takes_the_episode_in_as_the_shortest_history():
    # Returns 2, 0, 1: episode advantages 1, -1, 0 with weight 1.
    got = hgpo(hgpo_table(), gamma=1.0, norm="mean", eps=0.0, base_group=True)
    np.testing.assert_allclose(got, [2 / 3, 4.5 / 6, -1, -1, -1 / 3, -1.5 / 6])


@given(turn_tables())
def test_hgpo_without_history_is_the_step_part_of_gigpo(table):
    for norm in ("mean", "std"):
        step = gigpo(table, norm=norm, ddof=0) - grpo(table, norm=norm, ddof=0)
        np.testing.assert_allclose(hgpo(table, K=0, norm=norm), step, atol=1e-4, rtol=1e-5)


@given(turn_tables(), st.integers(1, 4))
def test_histories_agree_with_a_comparison_of_every_pair(table, longest):
    for k, (rows, label) in enumerate(histories(table, longest), start=1):
        assert rows.tolist() == [row for row in range(len(table)) if table.turn[row] >= k - 1]
        keys = [(table.group[r], *table.state_key[r - k + 1 : r + 1]) for r in rows]
        for i, one in enumerate(keys):
            assert [one == other for other in keys] == (label[i] == label).tolist()


def test_hcapo_by_hand():
    # Hindsight .2, .6 | .5: ratios to the rollouts' means .5, 1.5 | 1, clipped .8, 1.2 | 1.
    # R is 10 | 0 and gamma .5: Q = .8 * .5 * 10, 1.2 * 10 | 0 = 4, 12 | 0; mean 16/3.
    table = TurnTable.from_columns(rollout=[0, 0, 1], reward=[0, 10, 0], hindsight=[0.2, 0.6, 0.5])
    got = hcapo(table, norm="mean", gamma=0.5)
    np.testing.assert_allclose(got, [5 + 0, 5 + 20 / 3, -5 - 16 / 3])
    got = hcapo(table, norm="mean", gamma=0.5, mask_negative=False)
    np.testing.assert_allclose(got, [5 - 4 / 3, 5 + 20 / 3, -5 - 16 / 3])
    # Smoothed by a half: Q = 8, 12 | 0; mean 20/3.
    got = hcapo(table, norm="mean", gamma=0.5, smoothing=0.5, step_weight=2.0)
    np.testing.assert_allclose(got, [5 + 8 / 3, 5 + 32 / 3, -5 - 40 / 3])


@given(turn_tables())
def test_hcapo_without_hindsight_is_grpo(table):
    np.testing.assert_array_equal(hcapo(table, step_weight=0.0), grpo(table))
    part = hcapo(table, norm="mean", mask_negative=False) - grpo(table, norm="mean")
    np.testing.assert_allclose(np.bincount(table.group, weights=part), 0, atol=1e-9)


def test_hcapo_refuses_what_is_no_probability():
    with pytest.raises(TableError, match=r"hindsight is 1\.5 in row 2"):
        hcapo(three_rollouts(hindsight=[0.5, 0.5, 1.5, 0.5]))


def test_empg_by_hand():
    # Entropies 1, 3 | 2 become 0, 1 | .5; base 1, 1 | -1 (centred only).
    table = TurnTable.from_columns(rollout=[0, 0, 1], reward=[0, 2, 0], entropy=[1.0, 3.0, 2.0])
    scale = np.exp([0, -2, -1]) / np.exp([0, -2, -1]).mean()
    raw = scale * [1, 1, -1] + [0.1 * math.exp(-3), 0, 0]
    got = empg(table, base="dr_grpo", k=2.0, k_future=3.0, zeta=0.1)
    np.testing.assert_allclose(got, raw - raw.mean(), atol=1e-7)
    scale = np.exp([0, -1, -0.5]) / np.exp([0, -1, -0.5]).mean()  # as public code has it
    raw = scale * [1, 1, -1] + [0.05 * math.exp(-1), 0, 0]
    np.testing.assert_allclose(empg(table, base="dr_grpo"), raw - raw.mean(), atol=1e-7)


@given(turn_tables())
def test_empg_without_entropy_is_its_base_less_the_batch_mean(table):
    for base in ("grpo", "rloo", {"name": "gigpo", "norm": "mean"}):
        got = empg(table, base=base, k=0.0, zeta=0.0)
        options = {"norm": "mean"} if isinstance(base, dict) else {}
        function = {"grpo": grpo, "rloo": rloo}.get(base if isinstance(base, str) else "", gigpo)
        expected = function(table, **options)
        np.testing.assert_allclose(got, expected - expected.mean(), atol=1e-9)


def prime_table():
    """Process rewards 1, 3 | 0 and a success | a failure."""
    return TurnTable.from_columns(rollout=[0, 0, 1], reward=[0, 1, 0], process_reward=[1.0, 3, 0])


def test_prime_by_hand():
    # Means 2 | 0: less the other's mean 1, 3 | -2. Outcomes 1 | -1. Times 5 and 1, to go:
    # 5 * 4 + 1, 5 * 3 + 1 | 5 * -2 - 1.
    to_go = np.array([21, 16, -11])
    white = (to_go - to_go.mean()) / (np.std(to_go, ddof=1) + 1e-8)
    np.testing.assert_allclose(prime(prime_table(), outcome_weight=1.0), white)
    # Released: (r - 1) * 2 = 0, 4 | -2.
    to_go = np.array([21, 21, -11])
    white = (to_go - to_go.mean()) / (np.std(to_go, ddof=1) + 1e-8)
    got = prime(prime_table(), outcome_weight=1.0, baseline="released")
    np.testing.assert_allclose(got, white)


@given(turn_tables(max_turns=1))
def test_primes_baselines_are_one_for_rollouts_of_one_row(table):
    np.testing.assert_allclose(prime(table), prime(table, baseline="released"), atol=1e-9)
    outcome = prime(table, process_weight=0.0)
    success = replace(table, reward=table.success.astype(np.float64))
    compared = group_size(encode(table.group)) > 1
    expected = whiten(5 * rloo(success), compared, ddof=1, eps=1e-8)
    np.testing.assert_allclose(outcome, expected, atol=1e-9)


def test_labels_of_mixed_columns_have_no_gaps():
    label = encode(np.array([7, 7, -2, 7]), np.array(["x", "y", "x", "x"], dtype=object))
    assert sorted(set(label.tolist())) == [0, 1, 2]
    assert label[0] == label[3]


def test_without_eps_equal_values_are_still_zero():
    label = np.zeros(2, np.int64)
    assert standardise(np.ones(2), label, norm="std", ddof=1, eps=0.0).tolist() == [0, 0]
    assert leave_one_out(np.array([1.0, 3.0]), label).tolist() == [-2, 2]


def test_presets_keep_what_the_papers_set_differently():
    penalty = {"invalid_penalty": 0.1, "penalty_on": "row"}
    assert preset("paper", "gae") == {"eps": 1e-8, "gamma": 1.0, "ddof": 1, **penalty}
    assert preset("paper", "hgpo")["ddof"] == 0
    assert preset("paper", "gigpo")["gamma"] == 0.95
    assert preset("paper", "gigpo")["invalid_penalty"] == 0.1


def test_a_bases_own_settings_are_not_those_of_what_builds_on_it():
    for name in ("paper", "verl_agent"):
        assert preset(name, "oprl", {"base": "reinforce_pp"})["eps"] == 1e-6
        assert preset(name, "oprl", {"base": "reinforce_pp"})["gamma"] == 1.0
        assert preset(name, "salt", {"base": "reinforce_pp"})["eps"] == 1e-8


def test_the_preset_of_released_code_drops_zeros_as_that_code_does():
    assert preset("verl_agent", "hgpo")["drop_zero"] is True
    assert preset("verl_agent", "scpo", {"base": "hgpo"})["drop_zero"] is True
    assert "drop_zero" not in preset("paper", "hgpo")


def test_numbers_of_numpy_are_numbers():
    table = hgpo_table()
    np.testing.assert_array_equal(hgpo(table, K=np.int64(1)), hgpo(table, K=1))
