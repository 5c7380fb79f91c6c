"""SCPO: who is compared with whom, its orders, its scorers, its identities."""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import permuted, turn_tables

from harness import credit
from harness.credit import TurnTable
from harness.credit.balance import partitions
from harness.credit.estimators import scpo
from harness.credit.orders import turn_order
from harness.credit.registry import hyperparameters_of, needs, preset
from harness.credit.similarity import Cached, Exact, Lexical
from harness.types.errors import ConfigError

CASES = Path(os.environ.get("AGENTGYMS_TEST_CASES", ""), "credit")
needs_cases = pytest.mark.skipif(
    "AGENTGYMS_TEST_CASES" not in os.environ,
    reason="AGENTGYMS_TEST_CASES names no folder of oracle cases",
)
ORDERS = ("temporal", "length", "balanced(1)", "balanced(3)", "random(7)")
STEP_RETURN_BASES = ("gigpo", "hgpo", "ecpo")


def base_names():
    return [name for name in STEP_RETURN_BASES if name in credit.names()]


def a_group():
    """A success of three turns, and a failure that repeats its first, stumbles, then its last."""
    return TurnTable.from_columns(
        rollout=[0, 0, 0, 1, 1, 1, 1],
        reward=[0, 0, 10, 0, 0, 0, 0],
        state_key=["hall", "kitchen", "desk", "hall", "hall", "kitchen", "desk"],
        text=[
            "go || kitchen",
            "take || mug",
            "put || done",
            "go || kitchen",
            "go || kitchen",
            "sing || Nothing happens.",
            "take || mug",
        ],
    )


@st.composite
def tables_with_texts(draw):
    table = draw(turn_tables(max_turns=6))
    words = st.sampled_from(["", "a", "b c", "b d", "look || Nothing happens.", "go || x", "go x"])
    text = draw(st.lists(words, min_size=len(table), max_size=len(table)))
    return replace(table, text=np.array(text, dtype=object))


def test_a_failure_is_credited_for_new_progress_only():
    (one,) = scpo.plan(a_group())
    assert (one.rollout, one.reference) == (1, 0)
    assert one.rows.tolist() == [3, 4, 6]  # nothing happened in row 5
    assert one.credited == [(0, 0), (1, 2)]
    assert one.credit.tolist() == [1, 0, 1]
    np.testing.assert_array_equal(one.similarity, [[1, 1, 0], [0, 0, 1], [0, 0, 0]])
    bonus = np.array([0, 0, 0, 0.5, 0, 0, 0.5])
    expected = credit.get("gigpo")(replace(a_group(), return_bonus=bonus))
    np.testing.assert_array_equal(scpo.scpo(a_group()), expected)
    assert not np.allclose(expected, credit.get("gigpo")(a_group()))


def test_what_takes_part_can_be_chosen():
    kept = replace(a_group(), valid=np.array([True] * 4 + [False] + [True] * 2))
    assert scpo.plan(kept)[0].rows.tolist() == [3, 6]
    assert scpo.plan(kept, drop_invalid=False)[0].rows.tolist() == [3, 4, 6]
    assert scpo.plan(kept, drop_invalid=False, no_ops=())[0].rows.tolist() == [3, 4, 5, 6]
    assert scpo.plan(kept, no_ops=["kitchen", "mug"])[0].rows.tolist() == [5]
    failed = replace(a_group(), failed=np.array([False] * 6 + [True]))
    assert scpo.plan(failed)[0].rows.tolist() == [3, 4]


def test_a_group_without_success_and_its_threshold():
    assert scpo.plan(a_group(), success_threshold=10.0) == []
    np.testing.assert_array_equal(
        scpo.scpo(a_group(), success_threshold=10.0), credit.get("gigpo")(a_group())
    )


def test_the_reference_is_the_longest_or_shortest_success_whatever_the_order():
    table = TurnTable.from_columns(
        rollout=[0, 1, 1, 2, 2, 3],
        reward=[1, 0, 1, 0, 1, 0],
        text=["a", "b", "c", "b", "a", "b"],
    )
    assert [one.reference for one in scpo.plan(table)] == [2]  # "b", "a" is before "b", "c"
    assert [one.reference for one in scpo.plan(table, reference="shortest")] == [0]
    swapped = replace(table, text=np.array(["a", "b", "a", "b", "c", "b"], dtype=object))
    assert [one.reference for one in scpo.plan(swapped)] == [1]


def test_turns_are_ranked_in_every_order():
    table = TurnTable.from_columns(
        rollout=[0] * 4, reward=[0] * 4, text=["aa", "bbbb", "c", "dddd"]
    )
    assert turn_order(table, "temporal").tolist() == [0, 1, 2, 3]
    assert np.argsort(turn_order(table, "length")).tolist() == [1, 3, 0, 2]
    assert turn_order(table, "balanced(1)").tolist() == [0, 1, 2, 3]
    # Lengths 2, 4, 1, 4: the pairs (1, 2) and (4, 4) are joined to 2 + 4 and 1 + 4.
    order = np.argsort(turn_order(table, "balanced(2)")).tolist()
    assert [sorted(order[:2]), sorted(order[2:])] == [order[:2], order[2:]]
    assert sorted(sum(len(table.text[row]) for row in part) for part in (order[:2], order[2:])) == [
        5,
        6,
    ]
    shuffles = {tuple(turn_order(table, f"random({seed})")) for seed in range(20)}
    assert len(shuffles) > 5
    for wrong in ("balanced", "balanced(0)", "random(-1)", "newest", 4):
        with pytest.raises(ConfigError, match="order must be one of 'temporal', 'length'"):
            turn_order(table, wrong)


def test_rollouts_with_equal_texts_have_equal_balanced_orders():
    twins = TurnTable.from_columns(
        rollout=[0, 0, 0, 1, 1, 1], reward=[0] * 6, text=["aaa", "b", "cc"] * 2
    )
    order = turn_order(twins, "balanced(2)")
    assert order[:3].tolist() == order[3:].tolist()


def test_rows_that_fill_up_balanced_parts_have_no_length():
    split = partitions([0, 1, 1], 2)
    assert sorted(sum(row > 0 for row in part) for part in split) == [1, 1]


@given(st.lists(st.integers(0, 900), max_size=60), st.integers(1, 6))
def test_balanced_parts_hold_every_row_once(lengths, parts):
    split = partitions(lengths, parts)
    assert len(split) == parts
    assert sorted(row for part in split for row in part) == list(range(len(lengths)))
    assert all(part == sorted(part) for part in split)
    if len(lengths) % parts == 0:
        assert {len(part) for part in split} == {len(lengths) // parts}
    sums = [sum(lengths[row] for row in part) for part in split]
    assert max(sums) - min(sums) <= max(lengths, default=0)


@settings(max_examples=40)
@given(tables_with_texts(), st.sampled_from(ORDERS), st.sampled_from(["longest", "shortest"]))
def test_each_reference_position_is_credited_once_for_each_failure(table, order, reference):
    for one in scpo.plan(table, order=order, reference=reference, scorer="lexical"):
        positions = [position for position, _ in one.credited]
        assert positions == sorted(set(positions))
        assert table.group[one.rows].tolist() == [table.group[table.starts[one.reference]]] * len(
            one.rows
        )


@settings(max_examples=40)
@given(tables_with_texts(), st.sampled_from(ORDERS), st.booleans())
def test_asking_for_few_pairs_gives_what_whole_matrices_give(table, order, monotone):
    chosen = {"order": order, "monotone": monotone, "scorer": Lexical()}
    few, whole = scpo.plan(table, **chosen, whole=False), scpo.plan(table, **chosen)
    for one, other in zip(few, whole, strict=True):
        assert one.credited == other.credited
        np.testing.assert_array_equal(one.credit, other.credit)
        by_hand = scpo.match(
            other.similarity,
            Lexical()(table.text[one.reference_rows], table.text[one.reference_rows]),
            one.order,
            monotone=monotone,
        )
        np.testing.assert_array_equal(one.credit, by_hand)
    plain = scpo.scpo(table, **{**chosen, "scorer": lambda a, b: Lexical()(a, b)})
    np.testing.assert_array_equal(plain, scpo.scpo(table, **chosen))


@settings(max_examples=40)
@given(tables_with_texts(), st.sampled_from(ORDERS))
def test_without_weight_it_is_its_base(table, order):
    for base in base_names():
        got = scpo.scpo(table, base=base, alpha=0.0, order=order)
        np.testing.assert_array_equal(got, credit.get(base)(table))


@settings(max_examples=40)
@given(tables_with_texts(), st.sampled_from(ORDERS), st.randoms())
def test_the_order_of_rollouts_does_not_matter(table, order, random):
    shuffle = list(range(len(table.starts)))
    random.shuffle(shuffle)
    shuffled, rows = permuted(table, shuffle)
    shuffled = replace(shuffled, text=table.text[rows])
    for base in base_names():
        chosen = {"base": base, "order": order, "scorer": "lexical"}
        got = scpo.scpo(shuffled, **chosen)
        np.testing.assert_allclose(got, scpo.scpo(table, **chosen)[rows], atol=1e-6)


def test_it_builds_on_estimators_of_step_returns_only():
    with pytest.raises(ConfigError, match="its base 'grpo' does not read: expected one of"):
        credit.check("scpo", {"base": "grpo"})
    with pytest.raises(ConfigError, match="has no hyperparameter 'gama'"):
        credit.check("scpo", {"gama": 0.9})
    credit.check("scpo", {"base": {"name": "gigpo", "gamma": 0.9}, "norm": "mean"})
    assert hyperparameters_of("scpo")["gamma"] == 0.95
    assert preset("paper", "scpo")["order"] == "balanced(4)"
    assert needs("scpo") == ()
    flat = scpo.scpo(a_group(), gamma=0.5, norm="mean")
    nested = scpo.scpo(a_group(), base={"name": "gigpo", "gamma": 0.5, "norm": "mean"})
    np.testing.assert_array_equal(flat, nested)


@pytest.mark.parametrize(
    "wrong",
    [
        {"theta": 1.5},
        {"lam": 1.0},
        {"lam": -0.1},
        {"alpha": -1.0},
        {"alpha": "much"},
        {"reference": "best"},
        {"monotone": "perhaps"},
        {"drop_invalid": 1.5},
        {"order": "sideways"},
        {"scorer": "cross-encoder"},
        {"scorer": 3},
        {"success_threshold": float("nan")},
        {"scorer": lambda a, b: np.zeros((len(b) + 1, len(a)))},
        {"scorer": lambda a, b: np.full((len(a), len(b)), 1.5)},
        {"scorer": lambda a, b: np.full((len(a), len(b)), np.nan)},
    ],
)
def test_what_does_not_fit_is_refused(wrong):
    with pytest.raises(ConfigError):
        scpo.scpo(a_group(), **wrong)


def test_scorers_by_hand():
    texts = ["Go to  drawer 1", "go to drawer 1", "go to drawer 2", "...", ""]
    np.testing.assert_array_equal(Exact()(texts[:3], texts[:1]), [[1], [1], [0]])
    lexical = Lexical()(texts, texts[:1])
    np.testing.assert_allclose(lexical, [[1], [1], [0.75], [0], [0]])
    assert Lexical().pairs(["..."], [""]).tolist() == [1]


def test_each_distinct_pair_is_scored_once_and_the_last_used_are_kept():
    cached = Cached(Lexical(), size=2)
    np.testing.assert_array_equal(cached(["a", "b", "a"], ["a", "a"]), [[1, 1], [0, 0], [1, 1]])
    assert cached.num_scored == 2
    cached.pairs(["a", "c"], ["a", "a"])  # ("b", "a") was used longest ago
    cached.pairs(["a"], ["a"])
    assert cached.num_scored == 3
    cached.pairs(["b"], ["a"])
    assert cached.num_scored == 4
    with pytest.raises(ConfigError, match="size must be a whole number"):
        Cached(Exact(), size=0)


@pytest.mark.data
@needs_cases
def test_balanced_orders_of_the_cases():
    cases = json.loads((CASES / "balance_order.json").read_text())["cases"]
    for case in cases:
        assert partitions(case["seqlens"], case["world_size"]) == case["partitions"]
    assert len(cases) >= 10


@pytest.mark.data
@needs_cases
def test_the_whole_estimator_on_its_case():
    case = json.loads((CASES / "scpo.json").read_text())["end_to_end"]
    groups = json.loads((CASES / "c01_shared_states.json").read_text())["inputs"]["groups"]
    rollouts = groups[0]
    rows = [(i, t, step) for i, r in enumerate(rollouts) for t, step in enumerate(r["steps"])]
    table = TurnTable.from_columns(
        rollout=[i for i, _, _ in rows],
        reward=[step["reward"] for _, _, step in rows],
        state_key=[step["state"] for _, _, step in rows],
        valid=[step["valid"] for _, _, step in rows],
        text=[f"t{i} {t}" for i, t, _ in rows],
    )

    def scorer(texts_a, texts_b):
        def score(a, b):
            (one, u), (other, v) = a.split(), b.split()
            return (case["Mstar"] if one == other else case["M"][other])[int(u)][int(v)]

        return np.array([[score(a, b) for b in texts_b] for a in texts_a])

    for variant, expected in case["expected"].items():
        options = dict(part.split("=") for part in variant.split(","))
        got = scpo.scpo(
            table,
            alpha=case["alpha"],
            scorer=scorer,
            norm="std" if options["norm"] == "mean_std" else "mean",
            statistics="turn" if options["stats"] == "step" else "rollout",
            ddof=int(options["ddof"]),
        )
        np.testing.assert_allclose(got, np.concatenate(expected["total"]), atol=1e-6)
    assert len(case["expected"]) >= 8
