"""G2PO and GAGPO against references written row by row, by hand, and what they reduce to."""

import numpy as np
import pytest
from small_tables import (
    by_key,
    check_against,
    episode_advantages,
    is_last,
    returns_of,
    small_tables,
    within,
)

from harness.credit import TurnTable
from harness.credit.estimators.gae import gae
from harness.credit.estimators.graphs.g2po import g2po
from harness.credit.estimators.graphs.gagpo import gagpo
from harness.credit.estimators.grpo import grpo


def g2po_reference(rows, gamma=0.95, state_weight=1.0, norm="std", step_weight=1.0, penalty=0.0):
    returns, lengths = returns_of(rows), {}
    for row in rows:
        lengths[row["rollout"]] = row["turn"] + 1
    value = {}
    for key, members in by_key(rows, "group", "state_key").items():
        visits = [
            gamma ** (lengths[rows[i]["rollout"]] - rows[i]["turn"]) * returns[rows[i]["rollout"]]
            for i in members
        ]
        value[key] = sum(visits) / len(visits)
    gains, reached = [], []
    for i, row in enumerate(rows):
        if is_last(rows, i):
            there = returns[row["rollout"]] if row["success"] else 0.0
        else:
            there = value[row["group"], rows[i + 1]["state_key"]]
        gains.append(there - value[row["group"], row["state_key"]])
        reached.append(there - (0.0 if row["valid"] else penalty))
    gain = within(rows, gains, "group", norm=norm)
    among = within(rows, reached, "group", "state_key", norm=norm)
    episode = episode_advantages(rows, norm)
    step = [step_weight * (g + state_weight * s) for g, s in zip(gain, among, strict=True)]
    return [e + s for e, s in zip(episode, step, strict=True)]


def gagpo_reference(rows, gamma=0.95, lam=0.95, norm="std", penalty_on="step"):
    to_go = [0.0] * len(rows)
    for i in reversed(range(len(rows))):
        to_go[i] = rows[i]["reward"] + (0 if is_last(rows, i) else gamma * to_go[i + 1])
    value = [0.0] * len(rows)
    for members in by_key(rows, "group", "state_key").values():
        for i in members:
            value[i] = sum(to_go[j] for j in members) / len(members)
    advantage = [0.0] * len(rows)
    for i in reversed(range(len(rows))):
        last = is_last(rows, i)
        delta = rows[i]["reward"] + (0 if last else gamma * value[i + 1]) - value[i]
        advantage[i] = delta + (0 if last else gamma * lam * advantage[i + 1])
    cost = 0.1 if penalty_on == "row" else 0.0
    paid = [a - (0 if row["valid"] else cost) for a, row in zip(advantage, rows, strict=True)]
    return within(rows, paid, "group", norm=norm)


@pytest.mark.parametrize(
    "settings", [{}, {"norm": "mean", "gamma": 0.8}, {"state_weight": 0.0, "step_weight": 0.5}]
)
def test_g2po_is_the_reference(settings):
    check_against(g2po_reference, "g2po", **settings)


@pytest.mark.parametrize(
    "settings", [{}, {"norm": "mean", "lam": 0.0}, {"lam": 0.4, "penalty_on": "row"}]
)
def test_gagpo_is_the_reference(settings):
    check_against(gagpo_reference, "gagpo", **settings)


def test_an_invalid_turn_pays_among_the_turns_from_its_state():
    for rows, table in small_tables()[:50]:
        paid = g2po(table, penalty_on="row", norm="mean")
        step = paid - grpo(table, penalty_on="row", norm="mean")
        expected = g2po_reference(rows, norm="mean", penalty=0.1)
        np.testing.assert_allclose(step, np.subtract(expected, episode_advantages(rows, "mean")))


def two_rollouts():
    return TurnTable.from_columns(rollout=[0, 0, 1], reward=[0, 8, 0], state_key=["a", "b", "a"])


def test_g2po_by_hand():
    # V(a) = (.25 * 8 + .5 * 0) / 2 = 1, V(b) = .5 * 8 = 4. Gains 3, 4, -1; reached 4, 8, 0.
    step = g2po(two_rollouts(), gamma=0.5, norm="mean") - grpo(two_rollouts(), norm="mean")
    np.testing.assert_allclose(step, [3 - 2 + 2, 4 - 2, -1 - 2 - 2])


def test_gagpo_by_hand():
    # To go 4, 8, 0: V(a) = 2, V(b) = 8. Deltas .5 * 8 - 2, 0, -2; mean 0.
    np.testing.assert_allclose(gagpo(two_rollouts(), gamma=0.5, norm="mean"), [2, 0, -2])


def test_gagpo_is_gae_with_the_groups_own_values():
    for _, table in small_tables()[:50]:
        value = gagpo(table, norm="mean", lam=1.0, invalid_penalty=0.0)
        own = TurnTable.from_columns(
            rollout=table.rollout, reward=table.reward, group=table.group, success=table.success
        )
        # Where no state is visited twice, V is the return itself and nothing is left to credit.
        np.testing.assert_allclose(gagpo(own), 0.0, atol=1e-9)
        # With lambda 1 the values of later states cancel: the return less that of one's own state.
        to_go = gae(
            TurnTable.from_columns(
                **{k: v for k, v in vars(table).items() if v is not None and k != "value"},
                value=np.zeros(len(table)),
            ),
            gamma=0.95,
            invalid_penalty=0.0,
        )
        state = np.array([f"{g} {s}" for g, s in zip(table.group, table.state_key, strict=True)])
        mean = np.array([to_go[state == s].mean() for s in state])
        less = np.array([(to_go - mean)[table.group == g].mean() for g in table.group])
        np.testing.assert_allclose(value, to_go - mean - less, atol=1e-9)


def test_without_step_parts_g2po_is_grpo():
    for _, table in small_tables()[:50]:
        np.testing.assert_array_equal(g2po(table, step_weight=0.0), grpo(table))
