"""CAST and IGPO against references written row by row, and by hand."""

import math

import numpy as np
import pytest
from small_tables import (
    BATCH,
    COUNT,
    by_key,
    check_against,
    episode_advantages,
    is_last,
    joined,
    returns_of,
    scaled,
    small_tables,
)

from harness.credit import TurnTable
from harness.credit.estimators.grpo import grpo
from harness.credit.estimators.signals.cast import cast
from harness.credit.estimators.signals.igpo import igpo
from harness.credit.registry import preset


def cast_reference(rows, alpha=0.1):
    gains = [math.asinh(row["process_reward"]) for row in rows]
    rms = math.sqrt(sum(g * g for g in gains) / len(gains))
    episode = episode_advantages(rows)
    return [e + alpha * g / (rms + 1e-8) for e, g in zip(episode, gains, strict=True)]


def igpo_reference(rows, gamma=1.0, norm="std"):
    returns, signal = returns_of(rows), [0.0] * len(rows)
    for members in by_key(rows, "group").values():
        last = [i for i in members if is_last(rows, i)]
        others = [i for i in members if not is_last(rows, i)]
        ends = scaled([returns[rows[i]["rollout"]] for i in last], norm)
        gains = scaled([rows[i]["process_reward"] for i in others], norm)
        for i, x in zip([*last, *others], [*ends, *gains], strict=True):
            signal[i] = x
    out = list(signal)
    for i in reversed(range(len(rows))):
        if not is_last(rows, i):
            out[i] += gamma * out[i + 1]
    return out


def test_cast_is_the_reference():
    """Its scale is the batch's: of single tables, and of all of them in four batches."""
    batches = [joined(start) for start in range(0, COUNT, BATCH)]
    for rows, table in [*small_tables()[:50], *batches]:
        np.testing.assert_allclose(cast(table), cast_reference(rows), atol=1e-6)


@pytest.mark.parametrize("settings", [{}, {"gamma": 0.7, "norm": "mean"}])
def test_igpo_is_the_reference(settings):
    check_against(igpo_reference, "igpo", **settings)


def test_cast_by_hand():
    """One of the best moves, one in vain, and one that loses a game of three moves."""
    table = TurnTable.from_columns(
        rollout=[0, 0, 1], reward=[0, 1, 0], process_reward=[1.0, 0.0, -3.0]
    )
    gain = np.arcsinh([1.0, 0.0, -3.0])
    expected = grpo(table) + 0.1 * gain / np.sqrt((gain**2).mean())
    np.testing.assert_allclose(cast(table), expected, atol=1e-7)
    np.testing.assert_array_equal(cast(table, alpha=0.0), grpo(table))
    assert preset("paper", "cast")["eps"] == 1e-8


def test_igpo_by_hand():
    table = TurnTable.from_columns(
        rollout=[0, 0, 0, 1, 1],
        reward=[0, 0, 1, 0, 0],
        process_reward=[1.5, -0.5, 9.0, 0.5, 9.0],
    )
    # Gains 1.5, -0.5 and 0.5 less their mean 0.5; returns 1 and 0 less 0.5.
    got = igpo(table, norm="mean", gamma=0.5)
    np.testing.assert_allclose(got, [1 + 0.5 * (-1 + 0.25), -1 + 0.25, 0.5, 0 - 0.25, -0.5])


def test_without_gains_igpo_is_the_outcome():
    for _, table in small_tables()[:50]:
        plain = TurnTable.from_columns(
            rollout=table.rollout,
            group=table.group,
            reward=table.reward,
            process_reward=np.zeros(len(table)),
        )
        np.testing.assert_allclose(igpo(plain), grpo(plain), atol=1e-9)
