"""SCPO's matcher: against its pseudocode, on the oracle cases, and what it refuses."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.credit.estimators import scpo
from harness.types.errors import ConfigError

CASES = Path(os.environ.get("AGENTGYMS_TEST_CASES", ""), "credit")


@st.composite
def matchings(draw):
    m, size = draw(st.integers(1, 6)), draw(st.integers(0, 9))
    similar = st.floats(0, 1, width=16)

    def matrix(rows, columns):
        cells = draw(st.lists(similar, min_size=rows * columns, max_size=rows * columns))
        return np.array(cells).reshape(rows, columns)

    own = matrix(m, m)
    return matrix(m, size), np.maximum(own, own.T), draw(st.permutations(range(size)))


@given(matchings(), st.floats(0, 1, width=16), st.floats(0, 0.875, width=16), st.booleans())
def test_it_is_algorithm_2(matching, theta, lam, monotone):
    similarity, own, order = matching
    table = scpo.next_table(own, theta)
    expected = np.zeros(len(order))
    j = frontier = -1
    for v in order:
        while j >= 0 and similarity[j + 1, v] < theta:
            j = table[j]
        if similarity[j + 1, v] >= theta:
            j += 1
            if j > frontier or not monotone:
                expected[v] = max(0, (similarity[j, v] - lam) / (1 - lam))
                frontier = max(frontier, j)
        if j == len(own) - 1:
            break
    got = scpo.match(similarity, own, order, theta, lam, monotone)
    np.testing.assert_allclose(got, expected, atol=1e-12)


@given(st.lists(st.sampled_from("abc"), max_size=9))
def test_the_table_has_the_longest_borders_where_similarity_is_equality(word):
    own = np.array([[float(a == b) for b in word] for a in word]).reshape(len(word), len(word))
    longest = [
        max((k for k in range(j) if word[: k + 1] == word[j - k : j + 1]), default=-1)
        for j in range(len(word))
    ]
    assert scpo.next_table(own).tolist() == longest


def test_a_similarity_of_exactly_theta_is_a_match():
    for theta in (0.5, 1.0):
        similarity = np.full((3, 3), theta)
        assert scpo.next_table(similarity, theta).tolist() == [-1, 0, 1]
        found = scpo.matches(similarity, similarity, [0, 1, 2], theta, 0.4)
        assert found == [(0, 0), (1, 1), (2, 2)]


@given(matchings(), st.floats(0, 1, width=16), st.floats(0, 0.875, width=16))
def test_each_position_is_credited_at_most_once_and_forward(matching, theta, lam):
    similarity, own, order = matching
    found = scpo.matches(similarity, own, order, theta, lam)
    positions = [position for position, _ in found]
    assert positions == sorted(set(positions))
    assert len({step for _, step in found}) == len(found)
    got = scpo.match(similarity, own, order, theta, lam)
    assert (got > 0).sum() <= len(positions)
    assert ((got >= 0) & (got <= 1)).all()
    again = scpo.match(similarity, own, order, theta, lam, monotone=False)
    assert (again >= got).all()


def test_matrices_and_orders_that_do_not_fit_are_refused():
    square = np.eye(2)
    with pytest.raises(ConfigError, match="order must hold each of the 2 steps once"):
        scpo.match(square, square, [0, 0])
    with pytest.raises(ConfigError, match=r"shape \(3, 3\), expected \(2, 2\)"):
        scpo.match(square, np.eye(3), [0, 1])
    assert scpo.match(np.zeros((0, 2)), np.zeros((0, 0)), [0, 1]).tolist() == [0, 0]


@pytest.mark.parametrize("similarity", [[0.5, 0.5], [[0.1, 0.2], [0.3]], [["a", "b"]], 0.5])
def test_what_is_no_matrix_of_numbers_is_refused(similarity):
    with pytest.raises(ConfigError, match="similarit"):
        scpo.match(similarity, np.eye(2), [0, 1])
    with pytest.raises(ConfigError, match="similarit"):
        scpo.next_table(similarity)


@pytest.mark.parametrize("order", [[0.2, 1.7], ["0", "1"], "ab", [0, 1, 1], [None, 0]])
def test_what_is_no_order_is_refused(order):
    with pytest.raises(ConfigError, match="order must hold each of the 2 steps once"):
        scpo.match(np.eye(2), np.eye(2), order)


def test_monotone_is_yes_or_no():
    with pytest.raises(ConfigError, match="monotone must be one of"):
        scpo.match(np.eye(2), np.eye(2), [0, 1], monotone="no")


@pytest.mark.data
@pytest.mark.skipif(
    "AGENTGYMS_TEST_CASES" not in os.environ,
    reason="AGENTGYMS_TEST_CASES names no folder of oracle cases",
)
def test_matcher_cases():
    cases = json.loads((CASES / "scpo.json").read_text())["matcher"]
    for case in cases:
        own, similarity = np.array(case["Mstar"]), np.array(case["M"])
        levels = (case["theta"], case["lam"])
        assert scpo.next_table(own, case["theta"]).tolist() == case["next_table"]
        found = scpo.matches(similarity, own, case["order"], *levels, case["monotone"])
        assert [list(pair) for pair in found] == case["credited"]
        got = scpo.match(similarity, own, case["order"], *levels, case["monotone"])
        np.testing.assert_allclose(got, case["credit"], atol=1e-6)
    assert len(cases) >= 20
