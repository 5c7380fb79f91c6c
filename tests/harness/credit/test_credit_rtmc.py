"""RTMC and RAE against references written row by row, by hand, and what they reduce to."""

from dataclasses import replace

import numpy as np
import pytest
from small_tables import by_key, check_against, is_last, returns_of, small_tables

from harness.credit import TurnTable
from harness.credit.estimators.graphs.rtmc import rtmc
from harness.credit.estimators.reinforce import reinforce
from harness.credit.estimators.signals.rae import rae
from harness.credit.registry import preset


def rtmc_reference(rows, gamma=0.99, prior_visits=2.0, normalise=True):
    to_go = [row["reward"] for row in rows]
    for i in reversed(range(len(rows))):
        if not is_last(rows, i):
            to_go[i] += gamma * to_go[i + 1]
    local = [g - (0.0 if row["valid"] else 0.1) for g, row in zip(to_go, rows, strict=True)]
    advantage = [0.0] * len(rows)
    for members in by_key(rows, "group").values():
        if len({rows[i]["rollout"] for i in members}) == 1:
            continue
        found = group_credit(rows, members, local, prior_visits)
        mean = sum(found) / len(found)
        spread = (sum((x - mean) ** 2 for x in found) / len(found)) ** 0.5
        for i, x in zip(members, found, strict=True):
            advantage[i] = x / spread if normalise and spread > 1e-8 else x
    return advantage


def group_credit(rows, members, local, prior_visits):
    returns = returns_of(rows)
    rollouts = {rows[i]["rollout"] for i in members}
    prior = sum(returns[r] for r in rollouts) / len(rollouts)
    first = {}
    for i in members:
        first.setdefault(tuple(rows[i][n] for n in ("rollout", "state_key", "action_key")), i)
    found = []
    for row in (rows[i] for i in members):
        visits = [local[i] for (_, s, _), i in first.items() if s == row["state_key"]]
        value = (sum(visits) + prior_visits * prior) / (len(visits) + prior_visits)
        here = (row["state_key"], row["action_key"])
        taken = [local[i] for (_, s, a), i in first.items() if (s, a) == here]
        found.append(sum(taken) / len(taken) - value)
    return found


def rae_reference(rows):
    returns = returns_of(rows)
    return [returns[row["rollout"]] - row["value"] for row in rows]


@pytest.mark.parametrize("settings", [{}, {"gamma": 0.8, "prior_visits": 0.0, "normalise": False}])
def test_rtmc_is_the_reference(settings):
    check_against(rtmc_reference, "rtmc", **settings)


def test_rae_is_the_reference():
    check_against(rae_reference, "rae")


def test_rtmc_by_hand():
    """Two actions in one state, the second time that one is taken does not count."""
    table = TurnTable.from_columns(
        rollout=[0, 0, 1, 2],
        reward=[0.0, 1.0, 0.0, 0.0],
        state_key=["s"] * 4,
        action_key=["a", "a", "a", "b"],
    )
    # Q(a) = (0.5 + 0) / 2, Q(b) = 0; V = 0.5 / 3 of three visits, mean R = 1 / 3 as two more.
    value = (0.5 + 2 / 3) / 5
    got = rtmc(table, gamma=0.5, normalise=False)
    np.testing.assert_allclose(got, [0.25 - value] * 3 + [-value])
    scaled = rtmc(table, gamma=0.5)
    np.testing.assert_allclose(scaled, got / got.std())
    assert preset("paper", "rtmc")["gamma"] == 0.99


def test_two_rollouts_that_part_at_once_get_half_of_what_lies_between_them():
    table = TurnTable.from_columns(
        rollout=[0, 1], reward=[1.0, 0.0], state_key=["s", "s"], action_key=["a", "b"]
    )
    np.testing.assert_allclose(rtmc(table, normalise=False), [0.5, -0.5])
    wrong = replace(table, reward=np.zeros(2), action_key=table.state_key, valid=np.zeros(2) > 0)
    np.testing.assert_allclose(rtmc(wrong), -0.05)  # -0.1 less (2 * -0.1 + 2 * 0) / 4, not scaled
    lone = TurnTable.from_columns(rollout=[0, 0], reward=[0.0, 1.0])
    assert rtmc(lone).tolist() == [0.0, 0.0]


def test_without_a_prior_actions_of_a_state_weigh_nothing_together():
    for _, table in small_tables()[:50]:
        table = replace(table, valid=np.ones(len(table), np.bool_))
        got = rtmc(table, prior_visits=0.0, normalise=False)
        visits = {}
        for i in range(len(table)):
            key = table.rollout[i], table.state_key[i], table.action_key[i]
            visits.setdefault(key, i)
        sums = {}
        for (rollout, state, _), i in visits.items():
            key = table.group[table.starts[rollout]], state
            sums[key] = sums.get(key, 0.0) + got[i]
        np.testing.assert_allclose(list(sums.values()), 0.0, atol=1e-9)


def test_rae_with_one_baseline_is_reinforce():
    for _, table in small_tables()[:50]:
        level = replace(table, value=np.full(len(table), 2.5))
        np.testing.assert_array_equal(rae(level), reinforce(level, baseline=2.5))
