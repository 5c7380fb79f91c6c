"""Tables whose rows are tokens."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import turn_tables

from harness.credit import TurnTable
from harness.credit.estimators.gae import gae
from harness.credit.estimators.grpo import grpo
from harness.credit.estimators.reinforce import reinforce
from harness.credit.estimators.rloo import rloo
from harness.credit.tokens import by_turn, token_table
from harness.types.errors import TableError


def three_rollouts(**columns):
    """Returns 3, 0 and 0 of one, two and one turns; the first of the second's is invalid."""
    return TurnTable.from_columns(
        rollout=[0, 1, 1, 2], reward=[3, 0, 0, 0], valid=[True, False, True, True], **columns
    )


def test_token_tables_by_hand():
    table = three_rollouts(state_key=["a", "a", "b", "a"], value=[1.0, 2, 3, 4])
    tokens = token_table(table, np.array([2, 1, 3, 1]), process_reward=np.arange(7.0))
    assert tokens.rollout.tolist() == [0, 0, 1, 1, 1, 1, 2]
    assert tokens.turn.tolist() == [0, 1, 0, 1, 2, 3, 0]
    assert tokens.reward.tolist() == [0, 3, 0, 0, 0, 0, 0]
    assert tokens.success.tolist() == [True, True, False, False, False, False, False]
    assert tokens.valid.tolist() == [True, True, False, True, True, True, True]
    assert tokens.state_key.tolist() == ["a", "a", "a", "b", "b", "b", "a"]
    assert set(tokens.text) == {""}
    assert tokens.value is None
    np.testing.assert_array_equal(tokens.process_reward, np.arange(7.0))
    parts = by_turn(np.arange(7.0), np.array([2, 1, 3, 1]))
    assert [part.tolist() for part in parts] == [[0, 1], [2], [3, 4, 5], [6]]


@given(turn_tables(), st.data())
def test_tokens_of_a_turn_share_its_episode_advantage(table, data):
    n = len(table)
    lengths = np.array(data.draw(st.lists(st.integers(1, 4), min_size=n, max_size=n)))
    tokens = token_table(table, lengths)
    for estimate in (grpo, rloo, reinforce):
        np.testing.assert_array_equal(estimate(tokens), np.repeat(estimate(table), lengths))
        parts = by_turn(estimate(tokens), lengths)
        assert [len(part) for part in parts] == lengths.tolist()


@pytest.mark.parametrize(
    ("lengths", "columns", "message"),
    [
        ([1, 1], {}, "lengths must be 4 whole numbers"),
        ([1.0] * 4, {}, "lengths must be 4 whole numbers"),
        ([1, 0, 1, 1], {}, "turn in row 1 has 0 tokens"),
        ([1] * 4, {"value": [1.0]}, r"value has shape \(1,\)"),
        ([1] * 4, {"colour": [1] * 4}, "unknown column 'colour'"),
        ([1] * 4, {"reward": [1] * 4}, "'reward' follows from the turns"),
        ([1] * 4, {"valid": [True] * 4}, "'valid' follows from the turns"),
    ],
)
def test_token_tables_that_do_not_fit_are_refused(lengths, columns, message):
    with pytest.raises(TableError, match=message):
        token_table(three_rollouts(), np.array(lengths), **columns)


def test_an_empty_table_has_an_empty_token_table():
    none = np.zeros(0, np.int64)
    tokens = token_table(TurnTable.from_columns(rollout=[], reward=[]), none, value=[])
    assert len(tokens) == 0
    assert by_turn(gae(tokens), none) == []
    with pytest.raises(TableError, match=r"advantage has shape \(3,\), expected \(2,\)"):
        by_turn(np.zeros(3), np.array([1, 1]))
