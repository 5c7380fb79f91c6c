"""SALT: the paper's case studies, edges against a plain reading of the paper, matching by text."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import permuted, turn_tables

from harness import credit
from harness.credit import TurnTable
from harness.credit.estimators.graphs.salt import edges, merged, salt
from harness.credit.estimators.grpo import grpo
from harness.types.errors import ConfigError


def graph(*rollouts, advantages=None):
    """A group of rollouts, each a list of (action, observation).

    With `advantages`, returns are such that `dr_grpo` gives exactly these: one more rollout of an
    unshared step brings their mean to zero.
    """
    given = [0.0] * len(rollouts) if advantages is None else [*advantages, -sum(advantages)]
    rollouts = list(rollouts) + ([[("wait", "nothing happens")]] if advantages is not None else [])
    rows = [(r, t, *step) for r, steps in enumerate(rollouts) for t, step in enumerate(steps)]
    return TurnTable.from_columns(
        rollout=[r for r, *_ in rows],
        reward=[given[r] if t == 0 else 0.0 for r, t, *_ in rows],
        action_key=[action for *_, action, _ in rows],
        next_state_key=[observation for *_, observation in rows],
        text=[f"{action} || {observation}" for *_, action, observation in rows],
    )


def row(table, rollout, turn):
    return int(table.starts[rollout]) + turn


SUCCESS, FAILURE = 1.007, -1.854
GO = {place: (f"go to {place}", f"at {place}") for place in ("countertop 1", "stoveburner 1",
      "fridge 1", "countertop 2", "microwave 1", "cabinet 1", "drawer 1")}  # fmt: skip
OPEN = {place: (f"open {place}", f"{place} is open") for place in ("fridge 1", "cabinet 1")}
HEAT = ("heat cup 2 with microwave 1", "the cup 2 is hot")


def test_case_1_a_step_shared_by_successes_and_failures_is_averaged():
    # Figure 10: first countertop 1, then stoveburner 1, in rollouts of either outcome.
    start = [GO["countertop 1"], GO["stoveburner 1"]]
    table = graph(
        [*start, HEAT], [*start, GO["drawer 1"]], [*start, GO["fridge 1"]],
        advantages=[SUCCESS, FAILURE, SUCCESS],
    )  # fmt: skip
    got = salt(table, base="dr_grpo")
    mean = (2 * SUCCESS + FAILURE) / 3
    for rollout in range(3):
        np.testing.assert_allclose(got[[row(table, rollout, 0), row(table, rollout, 1)]], mean)
    assert 0 < mean < SUCCESS
    assert got[row(table, 0, 2)] == pytest.approx(SUCCESS)


def test_case_2_a_shared_step_of_a_failure_is_neutralised():
    # Figure 11: after countertop 1 and the opened fridge, countertop 2; once on the way to failure.
    path = [GO["countertop 1"], GO["fridge 1"], OPEN["fridge 1"], GO["countertop 2"]]
    table = graph(path, path, path, advantages=[FAILURE, SUCCESS, SUCCESS])
    got = salt(table, base="dr_grpo")
    assert got[row(table, 0, 3)] == pytest.approx((2 * SUCCESS + FAILURE) / 3)
    assert got[row(table, 0, 3)] > 0 > FAILURE


def test_case_3_a_distinct_step_of_a_success_keeps_its_advantage():
    # Figure 12: opening the cabinet after heating the cup; the failure opens it unheated.
    heated = [GO["microwave 1"], HEAT, GO["cabinet 1"], OPEN["cabinet 1"]]
    cold = [GO["microwave 1"], GO["cabinet 1"], OPEN["cabinet 1"]]
    table = graph(heated, cold, advantages=[SUCCESS, FAILURE])
    got = salt(table, base="dr_grpo")
    assert got[row(table, 0, 3)] == pytest.approx(SUCCESS)
    assert got[row(table, 1, 2)] == pytest.approx(FAILURE)
    assert got[row(table, 0, 0)] == pytest.approx((SUCCESS + FAILURE) / 2)


def test_case_4_a_distinct_step_of_a_failure_keeps_its_advantage():
    # Figure 13: going back to countertop 1 from the fridge, which no success does.
    back = [GO["drawer 1"], GO["countertop 1"], GO["fridge 1"], GO["countertop 1"]]
    on = [GO["drawer 1"], GO["countertop 1"], GO["fridge 1"], GO["microwave 1"]]
    table = graph(back, on, advantages=[FAILURE, SUCCESS])
    got = salt(table, base="dr_grpo")
    assert got[row(table, 0, 3)] == pytest.approx(FAILURE)
    assert got[row(table, 1, 3)] == pytest.approx(SUCCESS)
    np.testing.assert_allclose(got[:3], (SUCCESS + FAILURE) / 2)


def test_mistakes_older_than_the_window_do_not_matter():
    # Section 4.5: the same four steps after a different beginning share their last edge with h = 3.
    steps = [(f"a{i}", f"o{i}") for i in range(4)]
    table = graph([("x", "ox"), *steps], [("y", "oy"), *steps], advantages=[1.0, -1.0])
    assert [rows.tolist() for rows in merged(table, 3)] == [[4, 9]]
    assert [rows.tolist() for rows in merged(table, 2)] == [[3, 8], [4, 9]]
    assert merged(table, 4) == []
    assert len(merged(table)) == 1


def test_a_short_history_is_not_the_end_of_a_long_one():
    # The second turn of one rollout and the third of the other agree in their last pair only.
    table = graph([("b", "ob"), ("c", "oc")], [("a", "oa"), ("b", "ob"), ("c", "oc")])
    assert [rows.tolist() for rows in merged(table, 1)] == [[1, 4]]
    assert merged(table, 2) == []


def naive_edges(table, history):
    """(s_{t-1}, a_t, s_t) of each turn, states being tuples of the last pairs."""
    keys = []
    for i in range(len(table)):
        first = table.starts[table.rollout[i]]
        pairs = list(zip(table.action_key[first:i], table.next_state_key[first:i], strict=True))
        now = (table.action_key[i], table.next_state_key[i])
        before, after = tuple(pairs[-history:]), tuple([*pairs, now][-history:])
        keys.append((int(table.group[i]), before, now[0], after))
    return keys


@settings(max_examples=30)
@given(turn_tables(max_turns=6), st.integers(1, 4))
def test_edges_are_those_of_the_paper(table, history):
    keys = naive_edges(table, history)
    label = edges(table, history=history)
    same = [[a == b for b in keys] for a in keys]
    np.testing.assert_array_equal(label[:, None] == label, same)
    expected = {tuple(i for i, b in enumerate(keys) if a == b) for a in keys}
    got = [tuple(rows.tolist()) for rows in merged(table, history)]
    assert set(got) == {rows for rows in expected if len(rows) > 1}
    assert got == sorted(got)


@settings(max_examples=30)
@given(turn_tables(), st.sampled_from(["grpo", "rloo", "gigpo"]))
def test_without_merges_it_is_its_base(table, base):
    columns = {name: column for name, column in vars(table).items() if column is not None}
    columns["next_state_key"] = [f"{i}" for i in range(len(table))]
    unshared = TurnTable.from_columns(**columns)
    assert merged(unshared) == []
    expected = credit.get(base)(unshared)
    np.testing.assert_array_equal(salt(unshared, base=base), expected)
    np.testing.assert_array_equal(salt(unshared, base=base, average="distinct"), expected)


@settings(max_examples=30)
@given(turn_tables(), st.sampled_from(["grpo", "gigpo"]), st.integers(1, 3))
def test_averaging_keeps_the_sum_and_makes_merged_turns_equal(table, base, history):
    got, before = salt(table, base=base, history=history), credit.get(base)(table)
    assert got.sum() == pytest.approx(before.sum(), abs=1e-6)
    untouched = np.ones(len(table), dtype=bool)
    for rows in merged(table, history):
        np.testing.assert_allclose(got[rows], before[rows].mean(), atol=1e-9)
        untouched[rows] = False
    np.testing.assert_array_equal(got[untouched], before[untouched])


@settings(max_examples=30)
@given(turn_tables(), st.randoms(), st.sampled_from(["exact", "lexical"]))
def test_the_order_of_rollouts_does_not_matter(table, random, match):
    order = list(range(len(table.starts)))
    random.shuffle(order)
    shuffled, rows = permuted(table, order)
    for average in ("occurrence", "distinct"):
        settings = {"average": average, "match": match, "threshold": 0.5, "base": "gigpo"}
        got, expected = salt(shuffled, **settings), salt(table, **settings)[rows]
        np.testing.assert_allclose(got, expected, atol=1e-6)


def test_a_rollout_that_repeats_an_edge_weighs_more_unless_rollouts_are_counted():
    # The loop (look, seen) after (look, seen) occurs twice in the first rollout, once in the other.
    look = ("look", "seen")
    table = graph([look] * 3, [look] * 2, advantages=[1.0, -2.0])
    got = salt(table, history=1, base="dr_grpo")
    np.testing.assert_allclose(got[:5], [-0.5, 0, 0, -0.5, 0])
    got = salt(table, history=1, average="distinct", base="dr_grpo")
    np.testing.assert_allclose(got[:5], [-0.5] * 5)


def test_groups_are_never_mixed():
    table = TurnTable.from_columns(
        rollout=[0, 1, 2, 3],
        group=[0, 0, 1, 1],
        reward=[1, 0, 5, 0],
        action_key=["a"] * 4,
        next_state_key=["s"] * 4,
        text=["a || s"] * 4,
    )
    for match in ("exact", "lexical"):
        assert [rows.tolist() for rows in merged(table, match=match)] == [[0, 1], [2, 3]]
    np.testing.assert_allclose(salt(table), 0)


LIST_STYLE = """account_credentials = apis.supervisor.show_account_credentials()
venmo_password = [account for account in account_credentials
    if account["account_name"] == "venmo"][0]
print(venmo_password)"""
LOOP_STYLE = """creds = apis.supervisor.show_account_credentials()
for entry in creds:
    if entry["account_name"] == "venmo":
        password = entry["password"]
        break
print(password)"""
LOGIN = 'print(apis.venmo.login(username="ada@mail.com", password="x"))'


def cosine_of_pieces(texts_a, texts_b):
    """Cosine similarity of counts of three letters in a row."""

    def counts(text):
        text = text.lower()
        vector = np.zeros(4096)
        for i in range(len(text) - 2):
            vector[sum(ord(c) * 31**k for k, c in enumerate(text[i : i + 3])) % 4096] += 1
        return vector / max(np.linalg.norm(vector), 1)

    return np.array([counts(a) for a in texts_a]) @ np.array([counts(b) for b in texts_b]).T


@pytest.mark.parametrize(("match", "threshold"), [(cosine_of_pieces, 0.5), ("lexical", 0.4)])
def test_code_that_does_the_same_is_merged_by_its_text(match, threshold):
    # Figure 9: two ways to get the same password; logging in is something else.
    found = "[{'account_name': 'venmo', 'password': 'x'}]"
    table = graph(
        [(LIST_STYLE, found)], [(LOOP_STYLE, found)], [(LOGIN, "{'access_token': 'y'}")],
        advantages=[1.0, -0.5, 0.25],
    )  # fmt: skip
    assert merged(table) == []
    sets = merged(table, match=match, threshold=threshold)
    assert [rows.tolist() for rows in sets] == [[0, 1]]
    got = salt(table, match=match, threshold=threshold, base="dr_grpo")
    np.testing.assert_allclose(got, [0.25, 0.25, 0.25, -0.75])


def test_chains_of_similar_texts_are_one_step_and_the_threshold_must_be_exceeded():
    def overlap(texts_a, texts_b):
        return np.array([[len({*a} & {*b}) / 2 for b in texts_b] for a in texts_a])

    def letters(*texts):
        return TurnTable.from_columns(
            rollout=range(len(texts)), reward=[0] * len(texts), text=texts
        )

    chain = letters("ab", "bc", "cd", "de", "xy")
    found = merged(chain, match=overlap, threshold=0.4)
    assert [rows.tolist() for rows in found] == [[0, 1, 2, 3]]
    assert merged(chain, match=overlap, threshold=0.5) == []
    shuffled = letters("de", "xy", "bc", "ab", "cd")
    found = merged(shuffled, match=overlap, threshold=0.4)
    assert [rows.tolist() for rows in found] == [[0, 2, 3, 4]]


@pytest.mark.parametrize("texts", [("ab", "abcd"), ("abcd", "ab")])
def test_texts_that_are_similar_in_one_direction_are_one_step(texts):
    def contained(texts_a, texts_b):
        return np.array([[len({*a} & {*b}) / len(a) for b in texts_b] for a in texts_a])

    table = TurnTable.from_columns(rollout=[0, 1], reward=[0, 0], text=texts)
    assert [rows.tolist() for rows in merged(table, match=contained, threshold=0.6)] == [[0, 1]]


def test_empty_tables_and_wrong_settings():
    empty = TurnTable.from_columns(rollout=[], reward=[])
    for match in ("exact", "lexical"):
        assert salt(empty, match=match).shape == (0,)
        assert salt(empty, match=match, average="distinct").shape == (0,)
        assert merged(empty, match=match) == []
    table = graph([("a", "b")], [("a", "b")])
    for name, value in {
        "history": 0,
        "average": "all",
        "threshold": 2,
        "match": "psychic",
        "gamma": 0.9,
    }.items():
        with pytest.raises(ConfigError, match=name if name != "match" else "psychic"):
            salt(table, **{name: value})
    with pytest.raises(ConfigError, match="history"):
        salt(table, history=2.0)
    for wrong in (np.ones((1, 2)), np.full((1, 1), np.nan)):
        with pytest.raises(ConfigError, match="similarities"):
            salt(table, match=lambda a, b, answer=wrong: answer)
    np.testing.assert_array_equal(salt(table, base="grpo", ddof=0), grpo(table, ddof=0))
