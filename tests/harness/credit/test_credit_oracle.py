"""Measured advantages: the plain reference, what they add up to, and their scales."""

import math

import numpy as np
import pytest
from small_tables import check_against, small_tables

from harness.credit import TurnTable
from harness.credit.estimators.gae import gae
from harness.credit.estimators.signals.oracle import oracle
from harness.types.errors import ConfigError, TableError


def oracle_reference(rows, gamma=1.0, scale="none"):
    found = []
    for i, row in enumerate(rows):
        goes_on = i + 1 < len(rows) and rows[i + 1]["rollout"] == row["rollout"]
        after = rows[i + 1]["state_value"] if goes_on else 0.0
        found.append(row["reward"] + gamma * after - row["state_value"])
    n = len(found)
    if scale == "rms":
        return [a / (math.sqrt(sum(b * b for b in found) / n) + 1e-8) for a in found]
    if scale == "whiten":
        mean = sum(found) / n
        std = math.sqrt(sum((a - mean) ** 2 for a in found) / (n - 1)) if n > 1 else 0.0
        return [(a - mean) / (std + 1e-8) for a in found]
    return found


@pytest.mark.parametrize("gamma", [1.0, 0.9])
def test_oracle_is_the_reference(gamma):
    check_against(oracle_reference, "oracle", gamma=gamma)


@pytest.mark.parametrize("scale", ["rms", "whiten"])
def test_its_scales_are_those_of_the_reference(scale):
    """Each table is a batch of its own."""
    for rows, table in small_tables():
        wanted = oracle_reference(rows, scale=scale)
        np.testing.assert_allclose(oracle(table, scale=scale), wanted, atol=1e-6, rtol=1e-6)


def test_a_rollouts_credit_is_its_return_less_the_value_of_its_start():
    for _, table in small_tables():
        total = np.bincount(table.rollout, weights=oracle(table))
        expected = np.bincount(table.rollout, weights=table.reward)
        np.testing.assert_allclose(total, expected - table.state_value[table.starts])


def test_it_is_gae_of_one_step_and_keeps_signs_where_it_is_divided():
    rng = np.random.default_rng(0)
    columns = {"rollout": [0, 0, 0, 1, 1], "reward": [0, 0, 1, 0, 0], "state_value": rng.random(5)}
    table = TurnTable.from_columns(**columns)
    critic = TurnTable.from_columns(**columns | {"value": columns["state_value"]})
    np.testing.assert_allclose(oracle(table), gae(critic, lam=0.0, invalid_penalty=0.0))
    divided = oracle(table, scale="rms")
    assert (np.sign(divided) == np.sign(oracle(table))).all()
    assert (divided**2).mean() == pytest.approx(1)


def test_wrong_words_and_missing_columns_are_named():
    table = TurnTable.from_columns(rollout=[0], reward=[1])
    with pytest.raises(TableError, match="'oracle' needs the column 'state_value'"):
        oracle(table)
    with pytest.raises(ConfigError, match="scale must be one of"):
        oracle(TurnTable.from_columns(rollout=[0], reward=[1], state_value=[0.5]), scale="std")
