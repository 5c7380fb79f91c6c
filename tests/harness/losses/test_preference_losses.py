"""DPO, IPO and KTO against plain sums over pairs, finite differences and known values."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import turn_tables

from harness import credit
from harness.credit import TurnTable, diagnostics
from harness.credit.preferences import Pairs
from harness.credit.registry import hyperparameters_of, layers
from harness.types.errors import ConfigError

LEVELS = ("turn", "episode")
PAIRED = {"dpo": {"beta": 0.3}, "ipo": {"tau": 0.4}}


def step(**changed):
    """Two groups: in the first, three rollouts begin in one state and two meet in another."""
    given = {
        "rollout": [0, 0, 1, 1, 2, 3, 4],
        "group": [0, 0, 0, 0, 0, 1, 1],
        "reward": [0.0, 1.0, 0.0, 0.0, 0.5, 0.0, 2.0],
        "state_key": ["a", "b", "a", "b", "a", "a", "a"],
        "action_key": ["x", "y", "z", "w", "x", "x", "x"],
        "kl": [0.3, -0.2, 0.5, 0.1, -0.4, 0.2, 0.9],
        "value": [0.4, -0.1, 0.2, 0.0, 0.3, 0.1, 0.5],
    }
    return TurnTable.from_columns(**{**given, **changed})


def plain_pairs(table, level):
    """Yield the rows of the better and of the worse one of each pair, by the rule as written."""
    rows = range(len(table))
    episodes = [[i for i in rows if table.rollout[i] == r] for r in range(len(table.starts))]

    def to_go(i):
        return sum(table.reward[j] for j in rows if table.rollout[j] == table.rollout[i] and j >= i)

    if level == "episode":
        for a in episodes:
            for b in episodes:
                gap = sum(table.reward[a]) - sum(table.reward[b])
                if table.group[a[0]] == table.group[b[0]] and gap > 2e-8:
                    yield a, b
        return
    for i in rows:
        for j in rows:
            same = table.group[i] == table.group[j] and table.state_key[i] == table.state_key[j]
            other = table.action_key[i] != table.action_key[j]
            if same and other and table.valid[i] and to_go(i) - to_go(j) > 2e-8:
                yield [i], [j]


def plain_loss(name, table, kl, level):
    """Return the loss of log-ratios, as the papers write it."""
    found = []
    for better, worse in plain_pairs(table, level):
        margin = sum(kl[i] for i in better) - sum(kl[j] for j in worse)
        if name == "dpo":
            found.append(math.log1p(math.exp(-PAIRED["dpo"]["beta"] * margin)))
        else:
            found.append((margin - 1 / (2 * PAIRED["ipo"]["tau"])) ** 2)
    return sum(found) / max(1, len(found))


def plain_kto(table, kl, level, beta, good, bad):
    point = max(0.0, sum(table.value) / len(table))
    rows, found = range(len(table)), []
    for i in rows:
        mates = [
            j
            for j in rows
            if table.group[j] == table.group[i]
            and (level == "episode" or table.state_key[j] == table.state_key[i])
        ]
        value = {j: _value(table, j, level) for j in mates}
        if level == "episode":  # the mean is over episodes, not over turns
            compared = [value[j] for j in mates if table.turn[j] == 0]
        else:
            compared = [value[j] for j in mates]
        gap = value[i] - sum(compared) / len(compared)
        if gap > 2e-8 and table.valid[i]:
            found.append(good * (1 - 1 / (1 + math.exp(-beta * (kl[i] - point)))))
        elif gap < -2e-8:
            found.append(bad * (1 - 1 / (1 + math.exp(-beta * (point - kl[i])))))
    return sum(found) / max(1, len(found))


def _value(table, i, level):
    own = [j for j in range(len(table)) if table.rollout[j] == table.rollout[i]]
    return sum(table.reward[j] for j in own if level == "episode" or j >= i)


def differences(loss, kl):
    """Return the derivative of a loss in each log-ratio, by central differences."""
    found = []
    for i in range(len(kl)):
        up, down = kl.copy(), kl.copy()
        up[i], down[i] = up[i] + 1e-5, down[i] - 1e-5
        found.append((loss(up) - loss(down)) / 2e-5)
    return np.array(found)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", PAIRED)
@settings(max_examples=12)
@given(turn_tables())
def test_the_loss_of_pairs_and_its_gradient_are_the_papers(name, level, table):
    chosen = {**hyperparameters_of(name), **PAIRED[name], "level": level}
    figures = diagnostics.summarise(table, np.zeros(len(table)), layers(name, chosen))
    wanted = plain_loss(name, table, table.kl, level)
    assert figures["credit/preference_loss"] == pytest.approx(wanted, rel=1e-6, abs=1e-6)
    assert figures["credit/pairs"] == len([*plain_pairs(table, level)])
    weight = credit.get(name)(table, **chosen)
    slope = differences(lambda kl: plain_loss(name, table, kl, level), table.kl)
    assert -weight / len(table) == pytest.approx(slope, abs=1e-6)


@pytest.mark.parametrize("level", LEVELS)
@settings(max_examples=12)
@given(turn_tables())
def test_the_loss_of_labels_and_its_gradient_are_the_papers(level, table):
    chosen = {"beta": 0.7, "level": level, "desirable": 1.2, "undesirable": 0.9}
    chosen = {**hyperparameters_of("kto"), **chosen}
    figures = diagnostics.summarise(table, np.zeros(len(table)), layers("kto", chosen))
    wanted = plain_kto(table, table.kl, level, 0.7, 1.2, 0.9)
    assert figures["credit/preference_loss"] == pytest.approx(wanted, rel=1e-6, abs=1e-6)
    weight = credit.get("kto")(table, **chosen)
    slope = differences(lambda kl: plain_kto(table, kl, level, 0.7, 1.2, 0.9), table.kl)
    assert -weight / len(table) == pytest.approx(slope, abs=1e-6)


def test_at_equal_policies_the_losses_are_known():
    equal = step(kl=[0.0] * 7, value=[0.0] * 7)
    wanted = {"dpo": math.log(2), "ipo": 25.0, "kto": 0.5}
    for name, value in wanted.items():
        figures = diagnostics.summarise(equal, np.zeros(7), layers(name, {}))
        assert figures["credit/preference_loss"] == pytest.approx(value, abs=1e-12)


def test_who_is_compared_by_hand():
    """Of state a: x with 1 beats z with 0, and so does x with .5; equal actions are no pair."""
    weight = credit.get("dpo")(step(kl=[0.0] * 7), beta=0.2)
    pull = 7 * 0.2 * 0.5 / 3
    assert weight == pytest.approx([pull, pull, -2 * pull, -pull, pull, 0, 0])
    wide = credit.get("dpo")(step(kl=[0.0] * 7), beta=0.2, margin=0.6)
    assert wide == pytest.approx([1.5 * pull, 1.5 * pull, -1.5 * pull, -1.5 * pull, 0, 0, 0])
    invalid = step(kl=[0.0] * 7, valid=[False, True, True, True, True, True, True])
    assert credit.get("dpo")(invalid, beta=0.2)[0] == 0, "an invalid turn never wins"


def test_a_turn_that_siblings_share_is_trained_once_with_all_its_weight():
    """Two episodes differ from one another in their second turn alone, which they do not share."""
    branched = step(
        rollout=[0, 0, 1, 1],
        group=[0] * 4,
        reward=[0.0, 1.0, 0.0, 0.0],
        state_key=["a", "b", "a", "b"],
        action_key=["x", "y", "x", "w"],
        kl=[0.0] * 4,
        value=[0.0] * 4,
        parent=[-1, -1, 0, 0],
        branch_turn=[0, 0, 1, 1],
    )
    for level in LEVELS:
        weight = credit.get("dpo")(branched, level=level, beta=1.0)
        assert weight == pytest.approx([0, 1.5, 0, -1.5]), level
    label = credit.get("kto")(branched)
    assert label[[0, 2]] == pytest.approx([0, 0])
    assert label[1] > 0 > label[3]


def test_squared_numbers_by_hand():
    pairs = Pairs.within(np.array([0, 0]), np.array([True, False]))
    assert pairs.squared_loss(np.array([3.0, 1.0]), 5.0) == 9
    assert pairs.squared_slope(np.array([3.0, 1.0]), 5.0) == pytest.approx([-6, 6])


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("dpo", {"level": "group"}, "level must be one of 'turn', 'episode'"),
        ("dpo", {"gamma": 2.0}, "gamma must be"),
        ("ipo", {"tau": 0.0}, "tau must be"),
        ("kto", {"desirable": -1.0}, "desirable must be"),
    ],
)
def test_hyperparameters_out_of_range_are_refused(name, wrong, message):
    with pytest.raises(ConfigError, match=message):
        credit.get(name)(step(), **wrong)
