"""BEACON and PlanPO against references written row by row, and by hand."""

import numpy as np
import pytest
from small_tables import (
    by_key,
    check_against,
    episode_advantages,
    returns_of,
    scaled,
    small_tables,
)

from harness.credit import TurnTable
from harness.credit.estimators.grpo import grpo
from harness.credit.estimators.signals.beacon import beacon
from harness.credit.estimators.signals.planpo import planpo
from harness.credit.registry import preset
from harness.types.errors import TableError


def beacon_reference(rows, gamma=0.95, reached_only=True, norm="mean", step_weight=1.0):
    segment, reward = [0] * len(rows), [None] * len(rows)
    for members in by_key(rows, "rollout").values():
        k, begins = 0, 0
        for position, i in enumerate(members):
            segment[i] = k
            if rows[i]["process_reward"] > 0:
                for earlier in range(begins, position + 1):
                    reward[members[earlier]] = 10.0 * gamma ** (position - earlier)
                k, begins = k + 1, position + 1
    out = episode_advantages(rows, norm)
    for members in by_key(rows, "group").values():
        for k in {segment[i] for i in members}:
            same = [i for i in members if segment[i] == k]
            if reached_only:
                same = [i for i in same if reward[i] is not None]
            values = scaled([reward[i] or 0.0 for i in same], norm)
            for i, x in zip(same, values, strict=True):
                out[i] += step_weight * x
    return out


def planpo_reference(rows, alpha=0.1, among="successes", norm="std"):
    returns = returns_of(rows)
    turns = {r[0]: len(members) for r, members in by_key(rows, "rollout").items()}
    won = {row["rollout"]: row["success"] for row in rows}
    score = {r: returns[r] / turns[r] if won[r] else 0.0 for r in turns}
    out = episode_advantages(rows, norm, score)
    for members in by_key(rows, "group").values():
        same = [i for i in members if among == "all" or rows[i]["success"]]
        per_token = [
            returns[rows[i]["rollout"]] / rows[i]["length"] if rows[i]["success"] else 0.0
            for i in same
        ]
        for i, x in zip(same, scaled(per_token, norm), strict=True):
            out[i] += alpha * x
    return out


@pytest.mark.parametrize(
    "settings", [{}, {"reached_only": False, "norm": "std"}, {"gamma": 0.5, "step_weight": 10.0}]
)
def test_beacon_is_the_reference(settings):
    check_against(beacon_reference, "beacon", **settings)


@pytest.mark.parametrize("settings", [{}, {"among": "all", "alpha": 0.5, "norm": "mean"}])
def test_planpo_is_the_reference(settings):
    check_against(planpo_reference, "planpo", **settings)


def test_beacon_by_hand():
    # Milestones behind the second turn of the first, the first of the second, none in the third.
    table = TurnTable.from_columns(
        rollout=[0, 0, 1, 1, 2],
        reward=[0, 0, 0, 0, 0],
        process_reward=[0, 0.5, 0.5, 0, 0],
    )
    np.testing.assert_allclose(beacon(table, gamma=0.5), [5 - 25 / 3, 5 / 3, 5 / 3, 0, 0])
    step = beacon(table, gamma=0.5, reached_only=False)
    np.testing.assert_allclose(step, [5 - 6.25, 10 - 6.25, 10 - 6.25, 0, -6.25])
    assert preset("verl_agent", "beacon")["reached_only"] is False


def test_planpo_by_hand():
    table = TurnTable.from_columns(
        rollout=[0, 1, 1, 2], reward=[6, 0, 6, 0], length=[3.0, 6.0, 2.0, 1.0]
    )
    # Per turn 6, 3, 0: mean 3. Per token 2, 1 and 3 of the successes: mean 2.
    got = planpo(table, alpha=0.5, norm="mean")
    np.testing.assert_allclose(got, [3 + 0, 0 - 0.5, 0 + 0.5, -3])
    got = planpo(table, alpha=0.5, norm="mean", among="all")
    np.testing.assert_allclose(got, [3 + 0.25, -0.25, 0.75, -3 - 0.75])


def test_planpo_prefers_the_shorter_of_two_successes():
    for _, table in small_tables()[:50]:
        advantage = planpo(table, alpha=0.0)
        length = np.bincount(table.rollout)[table.rollout]
        returns = np.bincount(table.rollout, weights=table.reward)[table.rollout]
        for group in np.unique(table.group):
            won = (table.group == group) & table.success & (returns == 10.0)
            order = np.argsort(length[won], kind="stable")
            assert (np.diff(advantage[won][order]) <= 1e-9).all()


def test_a_response_without_tokens_is_refused():
    with pytest.raises(TableError, match=r"length is 0.0 in row 1, expected a positive number"):
        planpo(TurnTable.from_columns(rollout=[0, 1], reward=[1, 0], length=[3, 0]))


def test_without_milestones_beacon_is_the_episode_alone():
    for _, table in small_tables()[:50]:
        none = TurnTable.from_columns(
            rollout=table.rollout,
            group=table.group,
            reward=table.reward,
            process_reward=np.zeros(len(table)),
        )
        np.testing.assert_array_equal(beacon(none), grpo(none, norm="mean"))
