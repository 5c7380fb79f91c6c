"""What holds of every estimator, whatever it computes."""

import inspect
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import permuted, turn_tables

from harness import credit
from harness.credit import TurnTable, registry
from harness.credit.shared import Shared
from harness.types.errors import ConfigError, TableError

NAMES = credit.names()
OPTIONAL = ("value", "process_reward", "entropy", "hindsight", "kl", "length", "state_value")
OPTIONAL += ("teacher_kl", "energy", "next_atoms")
BATCH_WIDE = ("cast", "dmpo", "dpo", "empg", "ipo", "kto", "prime", "reinforce_pp")
"""Estimators that compare rows, or count pairs, of the whole batch."""

ABSOLUTE = ("cast", "distill", "gae", "imitation", "oracle", "rae", "reinforce", "sdar")
"""Estimators that do not compare rollouts with each other."""


def filled(n):
    """Every optional column, with n equal rows."""
    values = {name: {"clean": 0.5} if name == "next_atoms" else 0.5 for name in OPTIONAL}
    return {name: [value] * n for name, value in values.items()}


def known_statistics(name):
    known = "statistics" in registry.hyperparameters_of(name)
    return ({"statistics": "rollout"}, {"statistics": "turn"}) if known else ({},)


def equal_rollouts(last):
    """Rollouts through the same states by the same actions; `last` has their last rewards."""
    n = len(last)
    return TurnTable.from_columns(
        rollout=np.repeat(np.arange(n), 3),
        reward=[r for end in last for r in (0.0, 0.0, end)],
        success=np.ones(3 * n, bool),
        state_key=["a", "b", "c"] * n,
        next_state_key=["b", "c", "end"] * n,
        action_key=["x", "y", "z"] * n,
        text=["x || at b", "y || at c", "z || end"] * n,
        **filled(3 * n),
    )


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=15)
@given(turn_tables(), st.randoms())
def test_the_order_of_rollouts_and_of_groups_does_not_matter(name, table, random):
    order = list(range(len(table.starts)))
    random.shuffle(order)
    shuffled, rows = permuted(table, order)
    for options in known_statistics(name):
        got = credit.get(name)(shuffled, **options)
        np.testing.assert_allclose(got, credit.get(name)(table, **options)[rows], atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=15)
@given(turn_tables())
def test_advantages_are_finite_numbers_one_for_each_turn(name, table):
    for options in known_statistics(name):
        advantage = credit.get(name)(table, **options)
        assert advantage.shape == (len(table),)
        assert advantage.dtype == np.float64
        assert np.isfinite(advantage).all()


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=15)
@given(turn_tables())
def test_the_table_is_left_alone_and_the_result_is_repeated(name, table):
    before = {key: None if c is None else c.copy() for key, c in vars(table).items()}
    first = credit.get(name)(table)
    for key, column in before.items():
        if column is None:
            assert getattr(table, key) is None
        else:
            np.testing.assert_array_equal(getattr(table, key), column)
    np.testing.assert_array_equal(credit.get(name)(table), first)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in BATCH_WIDE])
@settings(max_examples=15)
@given(turn_tables(max_groups=2))
def test_groups_are_not_mixed_even_where_their_states_are_equal(name, table):
    both = {}
    for key, column in vars(table).items():
        if column is not None:
            both[key] = np.concatenate([column, column])
    n, num_rollouts, num_groups = len(table), len(table.starts), table.group.max() + 1
    both["rollout"][n:] += num_rollouts
    both["group"][n:] += num_groups
    both["reward"][n:] *= 3
    got = credit.get(name)(TurnTable.from_columns(**both))[:n]
    np.testing.assert_allclose(got, credit.get(name)(table), atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_table_has_no_advantages(name):
    empty = TurnTable.from_columns(rollout=[], reward=[], **{key: [] for key in OPTIONAL})
    for options in known_statistics(name):
        assert credit.get(name)(empty, **options).shape == (0,)


@pytest.mark.parametrize("name", NAMES)
def test_a_single_turn_is_no_problem(name):
    one = TurnTable.from_columns(rollout=[0], reward=[1], **filled(1))
    advantage = credit.get(name)(one)
    assert np.isfinite(advantage).all()
    if name not in ABSOLUTE:
        assert advantage.tolist() == [0.0]


@pytest.mark.parametrize("name", NAMES)
def test_rounding_errors_are_not_blown_up_to_signals(name):
    exact, rounded = equal_rollouts([0.3] * 4), equal_rollouts([0.3, 0.1 + 0.2, 0.3, 0.1 + 0.2])
    assert (exact.reward != rounded.reward).any()
    np.testing.assert_allclose(
        credit.get(name)(rounded), credit.get(name)(exact), atol=1e-6, rtol=0
    )


@pytest.mark.parametrize("name", NAMES)
def test_columns_it_needs_are_asked_for_by_name(name):
    table = equal_rollouts([0.0, 1.0])
    for column in registry.needs(name):
        with pytest.raises(TableError, match=f"needs the column '{column}'"):
            credit.get(name)(replace(table, **{column: None}))
    rest = [column for column in OPTIONAL if column not in registry.needs(name)]
    bare = replace(table, **dict.fromkeys(rest))
    np.testing.assert_array_equal(credit.get(name)(bare), credit.get(name)(table))


def wrong_values():
    for name in NAMES:
        for key, default in registry.hyperparameters_of(name).items():
            if isinstance(default, bool):
                yield name, key, "perhaps"
            elif isinstance(default, (int, float)):
                yield name, key, math.nan
                yield name, key, "much"
            elif isinstance(default, str):
                yield name, key, "no such thing"


@pytest.mark.parametrize(("name", "key", "value"), list(wrong_values()))
def test_wrong_hyperparameters_are_refused(name, key, value):
    with pytest.raises(ConfigError):
        credit.get(name)(equal_rollouts([0.0, 1.0]), **{key: value})


@pytest.mark.parametrize("name", NAMES)
def test_unknown_hyperparameters_are_refused(name):
    with pytest.raises(ConfigError, match="has no hyperparameter 'colour'"):
        credit.get(name)(equal_rollouts([0.0, 1.0]), colour="red")


@pytest.mark.parametrize("name", NAMES)
def test_every_hyperparameter_is_a_keyword_and_documented(name):
    function = credit.get(name)
    text = " ".join((function.__doc__ or "").split())
    args, _, shared = text.partition(" Keywords of `harness.credit.shared.Shared`: ")
    for key, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            owns = f" {key}: " in args
            assert owns or key in shared.strip(".").split(", "), f"{name} does not document {key}"
            assert owns or f"        {key}: " in (Shared.__doc__ or ""), key
    assert "Reference: " in text
    assert "Shape [N]" in text


@given(turn_tables(min_size=2))
def test_advantages_of_rollouts_sum_to_zero_in_every_group(table):
    for name in ("grpo", "dr_grpo", "rloo"):
        advantage = credit.get(name)(table)[table.starts]
        sums = np.bincount(table.group[table.starts], weights=advantage)
        np.testing.assert_allclose(sums, 0, atol=1e-9)
        rows = credit.get(name)(table, statistics="turn")
        np.testing.assert_allclose(np.bincount(table.group, weights=rows), 0, atol=1e-9)


@given(turn_tables())
def test_whitened_advantages_sum_to_zero_over_the_batch(table):
    for name, options in (
        ("gae", {"whiten": True}),
        ("prime", {}),
        ("reinforce_pp", {"kl_coefficient": 0.1}),
        ("reinforce_pp", {"baseline": True}),
        ("reinforce", {"baseline": "batch", "statistics": "turn"}),
        ("empg", {}),
    ):
        assert abs(credit.get(name)(table, **options).sum()) < 1e-6, name


@given(turn_tables(), st.floats(-3, 3, width=16))
def test_a_constant_added_to_every_return_changes_nothing(table, constant):
    reward = table.reward.copy()
    reward[table.starts] += constant
    shifted = replace(table, reward=reward)
    for name, options in (
        ("dr_grpo", {}),
        ("rloo", {}),
        ("dr_grpo", {"statistics": "turn"}),
        ("reinforce", {"baseline": "batch"}),
        ("reinforce_pp", {"baseline": True}),
    ):
        got = credit.get(name)(shifted, **options)
        np.testing.assert_allclose(got, credit.get(name)(table, **options), atol=1e-6)
