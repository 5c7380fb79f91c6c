"""ECPO: numbers worked by hand, Figure 1, identities, anchors."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import permuted, turn_tables

from harness import credit
from harness.credit import TurnTable
from harness.credit.estimators.ecpo import anchors, ecpo
from harness.credit.estimators.gigpo import gigpo
from harness.credit.estimators.grpo import grpo
from harness.credit.evidence import INVALID
from harness.credit.groups import encode
from harness.credit.shared import step_returns
from harness.types.errors import ConfigError


def single_state(rewards, actions, **columns):
    """Rollouts of one turn each, all in one state."""
    return TurnTable.from_columns(
        rollout=range(len(rewards)),
        reward=rewards,
        state_key=["s"] * len(rewards),
        action_key=actions,
        **columns,
    )


def figure_1():
    """Action A seven times with six successes, action B once with one."""
    return single_state([1.0] * 6 + [0.0, 1.0], ["A"] * 7 + ["B"])


def test_by_hand():
    # a: 4 and 8, b: 0. mu = 4, q = 6 and 0, q~ = (2*6 + 2*4)/4 = 5 and (0 + 2*4)/3 = 8/3.
    table = single_state([4.0, 8.0, 0.0], ["a", "a", "b"])
    (anchor,) = anchors(table)
    assert (anchor.visits, anchor.mean, anchor.depth, anchor.group) == (3, 4.0, 0, 0)
    often, once = anchor.actions
    assert (often.key, often.mean, often.shrunk, often.rows.tolist()) == ("a", 6.0, 5.0, [0, 1])
    assert (once.key, once.mean, once.rows.tolist()) == ("b", 0.0, [2])
    assert once.shrunk == pytest.approx(8 / 3)
    assert anchor.between == pytest.approx((2 * 2**2 + 4**2) / 3)
    assert anchor.within == pytest.approx((2 * 2**2 + 0) / 3)
    assert anchor.saturation == pytest.approx(3 / 5)
    assert anchor.reliability == pytest.approx(3 / 5 * 24 / 32, abs=1e-6)
    assert anchor.sigma == pytest.approx((5 - 8 / 3) / 2)
    step = 9 / 20 * np.array([1, 1, 8 / 3 - 4]) / (7 / 6)
    np.testing.assert_allclose(ecpo(table), grpo(table) + step, atol=1e-5)


@pytest.mark.parametrize(
    ("settings", "sigma"),
    [
        ({"sigma": "unweighted", "sigma_ddof": 1}, np.std([5, 8 / 3], ddof=1)),
        ({"sigma": "weighted"}, np.std([5, 5, 8 / 3])),
        ({"sigma": "weighted", "sigma_ddof": 1}, np.std([5, 5, 8 / 3], ddof=1)),
        ({"sigma": "raw"}, np.std([4, 8, 0])),
        ({"sigma": "raw", "sigma_ddof": 1}, np.std([4, 8, 0], ddof=1)),
        ({"sigma": "unweighted", "shrink": False}, np.std([6, 0])),
    ],
)
def test_what_advantages_are_divided_by(settings, sigma):
    (anchor,) = anchors(single_state([4.0, 8.0, 0.0], ["a", "a", "b"]), **settings)
    assert anchor.sigma == pytest.approx(sigma)
    centred = anchor.actions[0].shrunk - anchor.mean
    assert anchor.actions[0].advantage == pytest.approx(centred / (sigma + 1e-6))


@pytest.mark.parametrize(
    ("settings", "rho"),
    [
        ({"saturation": "none"}, 24 / 32),
        ({"saturation": "exp"}, (1 - np.exp(-3 / 2)) * 24 / 32),
        ({"saturation": "ratio", "tau": 6}, 3 / 9 * 24 / 32),
        # Between the estimates 5 and 8/3 about 4: (2 * 1 + 16/9) / 3 = 34/27; within 8/3 = 72/27.
        ({"saturation": "none", "between": "shrunk"}, 34 / (34 + 72)),
        ({"saturation": "none", "floor": 0.9}, 0.9),
        ({"saturation": "none", "floor": 0.5}, 24 / 32),
        ({"gate": False}, 1.0),
        ({"min_depth": 1}, 0.0),
        ({"min_depth": 1, "floor": 0.5}, 0.0),
        ({"min_depth": 1, "gate": False}, 0.0),
    ],
)
def test_how_far_an_anchor_is_trusted(settings, rho):
    (anchor,) = anchors(single_state([4.0, 8.0, 0.0], ["a", "a", "b"]), **settings)
    assert anchor.reliability == pytest.approx(rho, abs=1e-6)


def test_figure_1():
    (anchor,) = anchors(figure_1())
    lucky = anchor.actions[1]
    assert anchor.divergent
    assert lucky.shrunk - anchor.mean == pytest.approx((1 - 7 / 8) / 3)
    assert lucky.advantage == pytest.approx(1.5, abs=1e-3)
    assert anchor.reliability == pytest.approx(0.0163, abs=1e-4)
    got, before = ecpo(figure_1()), gigpo(figure_1(), ddof=0)
    assert got[-1] - grpo(figure_1())[-1] == pytest.approx(1.5 * 0.0163, abs=1e-3)
    assert before[-1] - grpo(figure_1(), ddof=0)[-1] == pytest.approx(0.378, abs=1e-3)
    raw = anchors(figure_1(), sigma="raw")[0].actions[1]
    assert raw.advantage == pytest.approx(0.378 / 3, abs=1e-3)


def test_no_anchor_is_divergent_when_the_frequent_action_is_better():
    assert not anchors(single_state([1.0, 1.0, 0.0], ["A", "A", "B"]))[0].divergent
    assert not anchors(single_state([1.0, 0.0], ["A", "B"]))[0].divergent


@settings(max_examples=30)
@given(
    st.lists(st.floats(-10, 10, width=16), min_size=1, max_size=8),
    st.floats(-10, 10, width=16),
    st.floats(0, 8, width=16),
)
def test_an_action_taken_once_keeps_its_share_of_the_distance(frequent, rare, kappa):
    table = single_state([*frequent, rare], ["often"] * len(frequent) + ["rare"])
    (anchor,) = anchors(table, kappa=kappa)
    (once,) = (action for action in anchor.actions if action.key == "rare")
    raw = once.mean - anchor.mean
    assert once.shrunk - anchor.mean == pytest.approx(raw / (1 + kappa), abs=1e-9)


def action_means(table, eps=1e-6):
    """GiGPO's step part with the mean return of the turn's action in place of its own."""
    returns = step_returns(table, 0.95, 0.1)
    state = encode(table.group, table.state_key)
    step = np.zeros(len(table))
    for s in set(state.tolist()):
        names = {
            i: table.action_key[i] if table.valid[i] else None for i in np.where(state == s)[0]
        }
        means = {
            a: np.mean([returns[i] for i, b in names.items() if a == b])
            for a in set(names.values())
        }
        mu, sigma = np.mean([returns[i] for i in names]), np.std(list(means.values()))
        for i, name in names.items():
            step[i] = (means[name] - mu) / (sigma + eps) if len(means) > 1 else 0
    return step


@settings(max_examples=30)
@given(turn_tables())
def test_without_gate_and_shrinkage_it_is_gigpo_on_action_means(table):
    got = ecpo(table, gate=False, shrink=False)
    np.testing.assert_allclose(got, grpo(table) + action_means(table), atol=1e-6)


@settings(max_examples=30)
@given(turn_tables())
def test_occurrences_without_gate_are_gigpo_where_actions_can_be_compared(table):
    step = ecpo(table, level="occurrence", gate=False) - grpo(table)
    gigpo_step = gigpo(table) - grpo(table)
    comparable = np.zeros(len(table), dtype=bool)
    for anchor in anchors(table):
        if len(anchor.actions) > 1:
            comparable[np.concatenate([action.rows for action in anchor.actions])] = True
    np.testing.assert_allclose(step, np.where(comparable, gigpo_step, 0), atol=1e-9)


@settings(max_examples=30)
@given(turn_tables())
def test_without_steps_or_without_pull_nothing_changes(table):
    np.testing.assert_array_equal(ecpo(table, step_weight=0.0), grpo(table))
    np.testing.assert_array_equal(
        ecpo(table, norm="mean", step_weight=0.0), grpo(table, norm="mean")
    )
    np.testing.assert_allclose(ecpo(table, kappa=0.0), ecpo(table, shrink=False), atol=1e-9)


@settings(max_examples=30)
@given(turn_tables(), st.sampled_from(["raw", "weighted", "unweighted"]), st.booleans())
def test_anchors_explain_the_advantages(table, sigma, gate):
    settings = {"sigma": sigma, "gate": gate, "norm": "mean", "gamma": 0.5}
    step = np.zeros(len(table))
    for anchor in anchors(table, **settings):
        assert 0 <= anchor.reliability <= 1
        assert sum(len(action.rows) for action in anchor.actions) == anchor.visits > 1
        for action in anchor.actions:
            step[action.rows] = anchor.reliability * action.advantage
    expected = grpo(table, norm="mean") + step
    np.testing.assert_allclose(ecpo(table, **settings), expected, atol=1e-9)


@settings(max_examples=30)
@given(turn_tables(), st.randoms())
def test_the_order_of_rollouts_changes_no_evidence(table, random):
    order = list(range(len(table.starts)))
    random.shuffle(order)
    shuffled, rows = permuted(table, order)
    np.testing.assert_allclose(ecpo(shuffled), ecpo(table)[rows], atol=1e-6)
    figures = [
        {(a.group, a.state_key): (a.visits, a.strict_valid, a.divergent) for a in anchors(t)}
        for t in (table, shuffled)
    ]
    assert figures[0] == figures[1]


def test_invalid_actions_are_one_action_and_never_a_valid_one():
    table = single_state(
        [1.0, 0.0, 2.0, 4.0], ["???", "@@", INVALID, "go"], valid=[False, False, True, True]
    )
    (anchor,) = anchors(table, invalid_penalty=0.0)
    seen = {(action.key, action.valid): action.rows.tolist() for action in anchor.actions}
    assert seen == {(INVALID, False): [0, 1], (INVALID, True): [2], ("go", True): [3]}
    assert anchor.actions[0].mean == 0.5


def test_the_penalty_and_the_bonus_enter_the_evidence():
    table = single_state([1.0, 1.0], ["a", "b"], valid=[True, False])
    assert anchors(table)[0].mean == pytest.approx(0.95)
    bonus = replace(table, return_bonus=np.array([0.0, 2.0]))
    assert anchors(bonus, invalid_penalty=0.0)[0].mean == pytest.approx(2.0)
    first, second = ecpo(bonus)
    assert second == pytest.approx(-first)
    assert second > 0.4


def test_a_state_is_as_deep_as_its_first_visit():
    table = TurnTable.from_columns(
        rollout=[0, 0, 0, 1, 1],
        reward=[0, 0, 1, 0, 0],
        state_key=["root", "door", "hall", "root", "hall"],
        action_key=["a", "b", "c", "d", "e"],
    )
    depths = {anchor.state_key: anchor.depth for anchor in anchors(table)}
    assert depths == {"root": 0, "hall": 1}
    trusted = {a.state_key: a.strict_valid for a in anchors(table, min_depth=1)}
    assert trusted == {"root": False, "hall": True}


def test_nothing_to_compare_falls_back_to_the_episode():
    equal = single_state([1.0, 1.0, 1.0], ["a", "b", "b"])
    assert not anchors(equal, floor=0.5)[0].strict_valid
    assert ecpo(equal, floor=0.5).tolist() == [0, 0, 0]
    one_action = single_state([1.0, 0.0], ["a", "a"])
    assert not anchors(one_action, floor=0.5)[0].strict_valid
    np.testing.assert_array_equal(ecpo(one_action, floor=0.5), grpo(one_action))


def test_equal_action_means_with_noise_within_give_nothing():
    table = single_state([0.1, 0.3, 0.2, 0.2], ["a", "a", "b", "b"])
    np.testing.assert_allclose(ecpo(table, gate=False), grpo(table), atol=1e-9)


def test_empty_tables_and_wrong_settings():
    empty = TurnTable.from_columns(rollout=[], reward=[])
    assert ecpo(empty).shape == (0,)
    assert ecpo(empty, level="occurrence", sigma="raw").shape == (0,)
    assert anchors(empty) == []
    for wrong in (
        {"kappa": -1},
        {"tau": 0},
        {"saturation": "linear"},
        {"sigma": "std"},
        {"sigma_ddof": 2},
        {"between": "all"},
        {"min_depth": -1},
        {"min_depth": 0.5},
        {"floor": 1.5},
        {"level": "turn"},
        {"norm": "max"},
        {"statistics": "group"},
        {"gamma": 2},
        {"eps": -1},
        {"step_weight": float("nan")},
        {"kapa": 1},
    ):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            ecpo(figure_1(), **wrong)
    with pytest.raises(ConfigError, match="kapa"):
        anchors(figure_1(), kapa=1)
    assert credit.get("ecpo")(figure_1(), eps=0.0).shape == (8,)
