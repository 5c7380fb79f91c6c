"""Losses of preferences and of imitation, against autograd, numbers by hand and the oracle."""

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from harness import credit
from harness.credit import TurnTable
from harness.credit.estimators.preferences.dmpo import occupancy_weights
from harness.credit.preferences import Pairs, cross_entropy, cross_entropy_slope
from harness.types.errors import ConfigError, TableError

CASES = os.environ.get("AGENTGYMS_TEST_CASES")

rollouts = st.lists(
    st.tuples(st.integers(0, 3), st.booleans(), st.floats(-30, 30)), min_size=1, max_size=12
)


def columns(rows):
    group, positive, score = zip(*rows, strict=True)
    return np.array(group), np.array(positive), np.array(score)


def test_pairs_stay_within_groups():
    group = np.array([5, 5, 2, 2, 2, 9])
    positive = np.array([True, False, False, True, False, True])
    pairs = Pairs.within(group, positive)
    assert sorted(zip(pairs.winner.tolist(), pairs.loser.tolist(), strict=True)) == [
        (0, 1),
        (3, 2),
        (3, 4),
    ]
    assert len(Pairs.within(np.zeros(0, np.int64), np.zeros(0, np.bool_))) == 0


def test_numbers_by_hand():
    pairs = Pairs.within(np.array([0, 0]), np.array([True, False]))
    score = np.array([1.0, 0.0])
    assert pairs.loss(score) == pytest.approx(math.log(1 + math.exp(-1)))
    pull = 1 / (1 + math.e)
    assert pairs.slope(score) == pytest.approx([-pull, pull])
    assert pairs.accuracy(score) == 1
    assert pairs.accuracy(-score) == 0
    assert pairs.accuracy(np.zeros(2)) == 0.5
    assert cross_entropy(np.array([1.0]), np.array([False])) == pytest.approx(math.log(1 + math.e))


@given(rollouts)
def test_slopes_are_the_derivatives_that_autograd_finds(rows):
    group, positive, score = columns(rows)
    told = torch.tensor(score, requires_grad=True)
    pairs = Pairs.within(group, positive)
    loss = torch.zeros((), dtype=torch.float64)
    if len(pairs):
        margin = told[torch.tensor(pairs.winner)] - told[torch.tensor(pairs.loser)]
        loss = -torch.nn.functional.logsigmoid(margin).mean()
        loss.backward()
        assert pairs.slope(score) == pytest.approx(told.grad.numpy(), abs=1e-12)
    else:
        assert not pairs.slope(score).any()
    assert pairs.loss(score) == pytest.approx(float(loss.detach()), abs=1e-12)

    told = torch.tensor(score, requires_grad=True)
    loss = torch.nn.functional.binary_cross_entropy_with_logits(told, torch.tensor(positive * 1.0))
    loss.backward()
    assert cross_entropy(score, positive) == pytest.approx(float(loss.detach()), abs=1e-12)
    assert cross_entropy_slope(score, positive) == pytest.approx(told.grad.numpy(), abs=1e-12)


def test_weights_of_dmpo_by_hand():
    table = TurnTable.from_columns(rollout=[0, 0, 0], reward=[0, 0, 1])
    expected = [1, 0.7 * (1 - 0.49) / (1 - 0.343), 0.49 * 0.3 / (1 - 0.343)]
    assert occupancy_weights(table, 0.7) == pytest.approx(expected)
    assert occupancy_weights(table, 1.0) == pytest.approx([1, 2 / 3, 1 / 3])
    assert occupancy_weights(table, 1 - 1e-5) == pytest.approx([1, 2 / 3, 1 / 3], abs=1e-4)


def test_dmpo_has_the_gradient_of_its_loss():
    """Minus the weighted sum of log-ratios, differentiated, is the loss differentiated."""
    given = {
        "rollout": [0, 0, 1, 1, 1, 2, 3],
        "group": [0, 0, 0, 0, 0, 0, 1],
        "reward": [0, 1, 0, 0, 0, 1, 1],
    }
    kl = torch.tensor([0.3, -0.2, 0.5, 0.1, -0.4, 0.2, 0.9], dtype=torch.float64)
    kl.requires_grad_(True)
    table = TurnTable.from_columns(**given, kl=kl.detach().numpy())
    weight = credit.get("dmpo")(table, beta=0.5, gamma=0.9)
    phi = torch.tensor(occupancy_weights(table, 0.9))
    s = [0.5 * (phi * kl)[torch.tensor(table.rollout == r)].sum() for r in range(3)]
    loss = -(
        torch.nn.functional.logsigmoid(s[0] - s[1]) + torch.nn.functional.logsigmoid(s[2] - s[1])
    )
    (loss / 2).backward()
    assert -weight == pytest.approx(kl.grad.numpy(), abs=1e-12)
    assert weight[-1] == 0, "a group without a failure says nothing"
    with pytest.raises(TableError, match="needs the column 'kl'"):
        credit.get("dmpo")(TurnTable.from_columns(**given))
    with pytest.raises(ConfigError, match="gamma must be"):
        credit.get("dmpo")(table, gamma=0.0)


def test_who_is_imitated():
    table = TurnTable.from_columns(
        rollout=[0, 0, 1], reward=[0, 1, 0], valid=[True, False, True], success=[True, True, False]
    )
    imitation = credit.get("imitation")
    assert imitation(table).tolist() == [1, 0, 0]
    assert imitation(table, valid_only=False).tolist() == [1, 1, 0]
    assert imitation(table, keep="all").tolist() == [1, 0, 1]
    with pytest.raises(ConfigError, match="keep must be one of"):
        imitation(table, keep="best")


@pytest.mark.data
@pytest.mark.skipif(not CASES, reason="AGENTGYMS_TEST_CASES names no folder of cases")
def test_losses_of_reward_models_agree_with_the_oracle():
    cases = json.loads(Path(CASES, "credit/token_level.json").read_text())
    for case in cases["oprl_dpo"]:
        total = {"sum": np.sum, "mean": np.mean}[case["agg"]]
        score = case["beta"] * np.array([total(row) for row in case["logratio"]])
        success = np.array(case["success"])
        pairs = Pairs.within(np.zeros(len(score), np.int64), success)
        assert pairs.loss(score) == pytest.approx(case["loss"], abs=1e-6)
    for case in cases["prime_ce"]:
        score = case["beta"] * np.array([np.sum(row) for row in case["logratio"]])
        assert cross_entropy(score, np.array(case["acc"]) == 1) == pytest.approx(
            case["loss"], abs=1e-6
        )
