"""Exact zeros: what is equal in a group gets the advantage 0.0, not rounding errors."""

import functools

import numpy as np
import pytest

from harness import credit
from harness.config import methods
from harness.credit import TurnTable, diagnostics, registry
from harness.credit.estimators.ecpo import anchors
from harness.credit.estimators.signals.planpo import planpo
from harness.credit.groups import distance, label_mean
from harness.credit.trees import backed_up, tree_of

VALUES = (0.1, 1 / 3, 0.7, -0.7, 1e-8, 1e8 / 3, 1e8, -12345.678)
GROUPS = [(value, size) for value in VALUES for size in range(2, 17)]
"""Return of every rollout of a group, and number of its rollouts."""

WHOLE_BATCH = ("empg", "oprl_reinforce_pp", "ppo", "prime", "reinforce", "reinforce_pp", "vineppo")
"""Methods that compare the turns of the whole batch: they are given one group at a time."""

LENGTHS = {
    "copies": lambda n: 3,  # rollouts through the same states
    "one turn": lambda n: 1,
    "unequal": lambda n: 1 + n % 3,  # rollouts through states of their own
}
PRESETS, PENALTIES = ("paper", "verl_agent"), ("step", "row", "return")

ALL, LONG = ("copies", "one turn", "unequal"), ("copies", "unequal")
COUNTED = {
    ("rae", ALL): "the baseline is a moving average of earlier returns",
    ("oracle", ALL): "the baseline is the measured value of the turn's own state",
    ("vineppo", LONG): "the same, whitened over turns whose values differ",
    ("hcapo", LONG): "Q is discounted by the turns that are left",
    ("g2po", LONG): "a state's value is discounted by the turns that are left",
    ("proxmo", LONG): "the baseline mixes the discounted returns of other states",
    ("rtmc", LONG): "the discounted return is smoothed towards an undiscounted one",
    ("empg", LONG): "the bonus for a certain next turn, which last turns lack",
    ("planpo", ("unequal",)): "the return is divided by the turns",
    ("otb", ("unequal",)): "turns beyond the second longest rollout have no baseline",
    ("sdar", ALL): "the gate is half open where the teacher agrees",
    ("sft", ALL): "a weight, not an advantage",
    ("rft", ALL): "a weight, not an advantage",
    ("ei", ALL): "a weight, not an advantage",
}
"""Methods and lengths whose advantages are not all 0 where returns are equal, and why."""

SIGNALS = {
    "ppo": "a critic's values",
    "reinforce_pp": "the divergence from the reference is part of the return",
    "prime": "process rewards",
    "cast": "a solver's judgements",
    "distill": "a teacher's divergence",
    "opsd": "a teacher's divergence",
    "oprl": "process rewards",
    "oprl_grpo": "process rewards",
    "oprl_reinforce_pp": "process rewards",
    "oprl_ground_truth": "process rewards",
    "vineppo": "measured values",
    "planpo": "the return is divided by the response's tokens",
    "igpo": "information gains",
    "mt_grpo": "rewards of turns",
    "turn_credit": "atoms of the goal",
    "procredit": "atoms of the goal",
}
"""Methods whose advantages need not be 0 where returns are equal and a model's signal differs."""

PENALISED = {
    ("ppo", "return", LONG): "turns before more penalties have lower returns",
    ("reinforce_pp", "return", LONG): "turns before more penalties have lower returns",
    ("prime", "return", LONG): "turns before more penalties have lower returns",
    ("oprl_reinforce_pp", "return", LONG): "turns before more penalties have lower returns",
    ("igpo", "row", ALL): "the penalty is subtracted from the advantage",
    ("treerpo", "row", ALL): "the penalty is subtracted from the advantage",
    ("at2po", "row", ALL): "the penalty is subtracted from the advantage",
    ("rtmc", "row", ALL): "the mean return that Q is smoothed towards has no local penalty",
    ("rtmc", "step", ALL): "the mean return that Q is smoothed towards has no local penalty",
    ("turn_credit", "row", ALL): "the penalty is subtracted from the advantage",
    ("otb", "row", ALL): "the penalty is subtracted from the advantage",
    ("graft", "row", ("unequal",)): "the sign is kept in a state visited once",
    ("procredit", "return", LONG): "turns before more penalties have lower returns",
}
"""The same where every turn pays a penalty: method, what it is on, and lengths."""


def walks(groups, length, valid=True, seed=None):
    """Return groups whose rollouts have equal returns.

    Args:
        groups: Return and number of rollouts of each group.
        length: Number of turns of the n-th rollout of a group. If all are equal, rollouts walk
            through the same states, else each has states of its own.
        valid: Whether turns are valid, all of them or none.
        seed: Of the columns that annotators fill; None leaves them without a signal.
    """
    own = length(0) != length(1)
    columns = {name: [] for name in ("rollout", "group", "turn", "reward", "state_key")}
    columns |= {name: [] for name in ("next_state_key", "success", "action_key")}
    rollout = 0
    for group, (value, size) in enumerate(groups):
        for n in range(size):
            turns = length(n)
            columns["rollout"] += [rollout] * turns
            columns["group"] += [group] * turns
            columns["turn"] += range(turns)
            columns["reward"] += [0.0] * (turns - 1) + [value]
            columns["success"] += [value > 0] * turns
            columns["action_key"] += [f"a{n % 2}"] * turns
            places = [f"s{t} of {n if own else 'all'}" for t in range(turns + 1)]
            columns["state_key"] += places[:-1]
            columns["next_state_key"] += places[1:]
            rollout += 1
    count = len(columns["turn"])
    text = [f"act || at {place}" for place in columns["next_state_key"]]
    more = signals(count, seed)
    return TurnTable.from_columns(**columns, valid=np.full(count, valid), text=text, **more)


def signals(count, seed):
    if seed is None:
        none = ("value", "process_reward", "kl", "teacher_kl", "state_value")
        some = ("entropy", "hindsight", "length", "energy")
        both = {**dict.fromkeys(none, 0.0), **dict.fromkeys(some, 0.5)}
        atoms = [{"clean": False}] * count
        filled = {name: np.full(count, value) for name, value in both.items()}
        return {**filled, "atoms": atoms, "next_atoms": atoms}
    rng = np.random.default_rng(seed)
    names = ("value", "process_reward", "kl", "teacher_kl", "state_value", "entropy", "hindsight")
    names += ("energy",)
    drawn = {"length": rng.integers(1, 9, count), **{name: rng.random(count) for name in names}}
    return {**drawn, "next_atoms": [{"clean": float(share)} for share in rng.random(count)]}


@functools.cache
def tables(alone, kind, **more):
    """Return one table with all groups, or some with one each."""
    groups = [GROUPS[i : i + 1] for i in range(0, len(GROUPS), 7)] if alone else [GROUPS]
    return [walks(own, LENGTHS[kind], **more) for own in groups]


def largest(name, preset, penalty_on, kind, **more):
    """Return the largest absolute advantage of a method, without models."""
    row = methods.get(name)
    own = {key: value for key, value in row.credit.items() if key != "scorer"}
    given = {**registry.preset(preset, row.estimator, own), **own}
    if "penalty_on" in registry.hyperparameters_of(row.estimator, own):
        given |= {"penalty_on": penalty_on, "invalid_penalty": 0.1}
    assign = credit.get(row.estimator)
    return max(
        np.abs(assign(table, **given)).max() for table in tables(name in WHOLE_BATCH, kind, **more)
    )


@pytest.mark.parametrize("kind", LENGTHS)
@pytest.mark.parametrize("name", methods.METHODS)
def test_equal_returns_give_exact_zeros(name, kind):
    zero = not any(name == method and kind in kinds for method, kinds in COUNTED)
    for preset in PRESETS:
        for penalty_on in PENALTIES:
            assert (largest(name, preset, penalty_on, kind) == 0.0) == zero, (preset, penalty_on)


@pytest.mark.parametrize("kind", LENGTHS)
@pytest.mark.parametrize("name", methods.METHODS)
def test_equal_returns_give_exact_zeros_whatever_a_model_says_of_turns(name, kind):
    if any(name == method and kind in kinds for method, kinds in COUNTED):
        return  # see above
    got = [largest(name, preset, "row", kind, seed=0) for preset in PRESETS]
    # These compare the signals of turns that are not the last, or not the first.
    alone = name in ("igpo", "mt_grpo", "turn_credit") and kind == "one turn"
    assert (max(got) == 0.0) == (name not in SIGNALS or alone)


@pytest.mark.parametrize("kind", LENGTHS)
@pytest.mark.parametrize("name", methods.METHODS)
def test_equal_penalties_leave_exact_zeros(name, kind):
    if any(name == method and kind in kinds for method, kinds in COUNTED):
        return  # see above
    for penalty_on in PENALTIES:
        if penalty_on == "return" and kind == "unequal":
            continue  # longer rollouts pay more: their returns are not equal
        zero = not any((name, penalty_on) == own[:2] and kind in own[2] for own in PENALISED)
        for preset in PRESETS:
            got = largest(name, preset, penalty_on, kind, valid=False)
            assert (got == 0.0) == zero, (preset, penalty_on)


def test_equal_returns_are_the_value_of_every_place_in_a_tree():
    """Siblings that branch from one episode before its last turns, and a further episode."""
    for value, size in GROUPS:
        turns = 3 * (size + 1)
        parent = [-1] * 3 + [0] * (turns - 6) + [-1] * 3
        shared = [0] * 3 + [1 + i // 3 % 2 for i in range(turns - 6)] + [0] * 3
        table = TurnTable.from_columns(
            rollout=np.repeat(np.arange(size + 1), 3),
            reward=[0.0, 0.0, value] * (size + 1),
            parent=parent,
            branch_turn=shared,
        )
        worth = backed_up(tree_of(table), table, np.full(size + 1, value))
        assert np.all(worth == value), (value, size)
        for name in ("tree_grpo", "treerpo", "at2po"):
            assert np.all(credit.get(name)(table) == 0.0), (name, value, size)


def test_the_mean_of_equal_values_is_their_value():
    for value, size in GROUPS:
        label = np.repeat([0, 1], size)
        x = np.where(label == 0, value, 0.25)
        assert label_mean(x, label).tolist() == [value, 0.25]
        weight = np.full(2 * size, 1 / size)
        assert label_mean(x, label, weight).tolist() == [value, 0.25]
    assert label_mean(np.array([1.0, 2.0, 6.0]), np.array([0, 2, 2])).tolist() == [1.0, 0.0, 4.0]
    assert label_mean(np.zeros(0), np.zeros(0, np.int64)).tolist() == []


def test_a_distance_within_rounding_errors_is_zero():
    got = distance(np.array([0.1 + 0.2, 0.3 + 1e-9, 1e8 * (0.1 + 0.2)]), np.array([0.3, 0.3, 3e7]))
    assert got[0] == got[2] == 0.0
    assert got[1] > 0


def test_penalties_of_failures_do_not_depend_on_their_returns():
    """Two failures of one turn each, with returns of very different size, pay the same."""
    table = TurnTable.from_columns(
        rollout=[0, 1], reward=[1e8, 1.0], success=[0, 0], valid=[0, 0], length=[1, 1]
    )
    assert planpo(table, penalty_on="row", invalid_penalty=0.1).tolist() == [0.0, 0.0]


def test_figures_take_rounding_errors_for_no_difference():
    table = TurnTable.from_columns(
        rollout=[0, 1, 2, 2],
        reward=[0.3, 0.3, 0.1, 0.2],  # 0.1 + 0.2 is more than 0.3
        value=[0.0, 0.0, 0.0, 0.0],
        state_key=["s", "s", "s", "t"],
        action_key=["often", "often", "once", "on"],
    )
    assert diagnostics.silent_groups(table) == 1.0
    assert diagnostics.divergent_anchors(table, gamma=1.0) == 0.0
    (anchor,) = anchors(table, gamma=1.0)
    assert not anchor.divergent
    equal = TurnTable.from_columns(rollout=range(3), reward=[0.1] * 3, value=[0.5, 0.1, 0.0])
    found = diagnostics.figures_of(registry.layers("gae", {}), equal)
    assert found["credit/explained_variance"] == 0.0
