"""States that are one because their texts are alike."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import permuted, turn_tables

from harness.credit import TurnTable
from harness.credit.estimators.gigpo import gigpo
from harness.credit.estimators.grpo import grpo
from harness.credit.groups import encode, first_fit, states
from harness.types.errors import ConfigError


def test_texts_are_clustered_by_greedy_first_fit_in_alphabetical_order():
    # "abcd" begins a cluster; "abce" has ratio .75 with it, "abef" .5, and .75 with "abce".
    assert first_fit(["abef", "abcd", "abce", "abcd"], 0.7).tolist() == [1, 0, 0, 0]
    assert first_fit(["abef", "abcd", "abce", "abcd"], 0.4).tolist() == [0, 0, 0, 0]
    assert first_fit(["abef", "abcd", "abce", "abcd"], 1.0).tolist() == [2, 0, 1, 0]


def rooms(**columns):
    keys = ["k0", "k1", "k0", "k2", "k0", "k3"]
    texts = ["go || a red room, 1", "", "go || a red room, 2", "", "go || the sea", ""]
    return TurnTable.from_columns(
        rollout=[0, 0, 1, 1, 2, 2], reward=[0, 3, 0, 1, 0, 0], state_key=keys, text=texts, **columns
    )


def test_states_whose_texts_are_alike_are_one_state_on_request():
    exact, alike = states(rooms()), states(rooms(), 0.9)
    assert exact.tolist() == encode(rooms().group, rooms().state_key).tolist()
    assert len({exact[1], exact[3], exact[5]}) == 3
    assert alike[1] == alike[3] != alike[5]
    assert alike[0] == alike[2] == alike[4]
    # To go .95 * 3, .95, 0 at k0; 3 and 1 in the rooms, 0 alone at the sea.
    step = gigpo(rooms(), norm="mean", similarity=0.9) - grpo(rooms(), norm="mean")
    np.testing.assert_allclose(step, [2.85 - 3.8 / 3, 1, 0.95 - 3.8 / 3, -1, -3.8 / 3, 0])


def test_alike_states_of_different_groups_are_not_one():
    table = rooms(group=[0, 0, 1, 1, 1, 1])
    alike = states(table, 0.9)
    assert alike[1] != alike[3]
    assert alike[0] != alike[2] == alike[4]


def test_without_texts_the_keys_are_compared():
    table = TurnTable.from_columns(
        rollout=[0, 1, 2], reward=[1, 0, 0], state_key=["a red room, 1", "a red room, 2", "sea"]
    )
    assert states(table, 0.9).tolist() == [0, 0, 1]


@settings(max_examples=50)
@given(turn_tables(), st.randoms())
def test_similarity_does_not_depend_on_the_order_and_only_joins(table, random):
    order = list(range(len(table.starts)))
    random.shuffle(order)
    shuffled, rows = permuted(table, order)
    expected = gigpo(table, similarity=0.7)[rows]
    np.testing.assert_allclose(gigpo(shuffled, similarity=0.7), expected, atol=1e-6)
    exact, alike = states(table), states(table, 0.7)
    pairs = np.unique(np.stack([exact, alike]), axis=1)
    assert len(pairs[0]) == exact.max() + 1, "a state is in one cluster"
    together = np.unique(np.stack([alike, table.group]), axis=1)
    assert len(together[0]) == len(np.unique(alike)), "a cluster is in one group"


@pytest.mark.parametrize("similarity", [0, 0.0, 1.5, -1, float("nan"), "much"])
def test_a_similarity_that_is_no_share_is_refused(similarity):
    with pytest.raises(ConfigError, match="similarity must be"):
        gigpo(rooms(), similarity=similarity)
