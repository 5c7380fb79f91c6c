"""Estimators built on others: the compositions the papers invite, nested bases, refusals."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import permuted, turn_tables

from harness import credit
from harness.credit import TurnTable, registry
from harness.credit.estimators.graphs.salt import merged
from harness.types.errors import ConfigError

COMPOSED = {
    "salt on gigpo": ("salt", {"base": "gigpo"}),
    "salt on ecpo": ("salt", {"base": "ecpo", "average": "distinct"}),
    "salt on scpo on gigpo": ("salt", {"base": {"name": "scpo", "base": "gigpo"}}),
    "gvpo on gigpo": ("gvpo", {"base": "gigpo"}),
    "gvpo on hgpo": ("gvpo", {"base": "hgpo"}),
    "gvpo on salt": ("gvpo", {"base": "salt"}),
    "gvpo on salt on rloo": ("gvpo", {"base": {"name": "salt", "base": "rloo"}}),
    "oprl on gigpo": ("oprl", {"base": "gigpo"}),
    "oprl on salt": ("oprl", {"base": "salt"}),
    "scpo on hgpo": ("scpo", {"base": "hgpo"}),
    "scpo on ecpo": ("scpo", {"base": "ecpo"}),
}

composed = pytest.mark.parametrize(("name", "given_"), COMPOSED.values(), ids=COMPOSED)


@composed
@settings(max_examples=15)
@given(table=turn_tables(max_groups=2), random=st.randoms())
def test_compositions_ignore_the_order_of_rollouts(name, given_, table, random):
    order = list(range(len(table.starts)))
    random.shuffle(order)
    shuffled, rows = permuted(table, order)
    got = credit.get(name)(shuffled, **given_)
    np.testing.assert_allclose(got, credit.get(name)(table, **given_)[rows], atol=1e-6)


@composed
def test_compositions_take_empty_tables(name, given_):
    empty = {column: [] for column in ("rollout", "reward", "process_reward")}
    assert credit.get(name)(TurnTable.from_columns(**empty), **given_).shape == (0,)


@pytest.mark.parametrize("base", ["hgpo", "ecpo", "gigpo"])
@settings(max_examples=20)
@given(table=turn_tables(max_groups=2))
def test_scpo_without_weight_is_its_base(base, table):
    got = credit.get("scpo")(table, alpha=0.0, base=base)
    np.testing.assert_array_equal(got, credit.get(base)(table))


def failure_beside_a_success():
    """Both take the key; the failure, unlike the success, then looks around."""
    return TurnTable.from_columns(
        rollout=[0, 0, 1, 1],
        reward=[0, 10, 0, 0],
        state_key=["hall", "room", "hall", "room"],
        next_state_key=["room", "end", "room", "room"],
        action_key=["take key", "open door", "take key", "look"],
        text=["take key || you have it", "open door || done", "take key || you have it", "look"],
        failed=[False, False, False, True],
    )


@pytest.mark.parametrize("base", ["gigpo", "hgpo", "ecpo"])
def test_scpo_reaches_the_step_returns_of_its_base(base):
    # The failures know the success's first step, the third rollout none: only "take key" gains.
    table = TurnTable.from_columns(
        rollout=[0, 0, 1, 1, 2],
        reward=[0, 10, 0, 0, 0],
        state_key=["hall", "room", "hall", "room", "hall"],
        action_key=["take key", "open door", "take key", "look", "wait"],
        text=[
            "take key || mine",
            "open door || done",
            "take key || mine",
            "look || a",
            "wait || b",
        ],
    )
    plain = credit.get(base)(table)
    got = credit.get("scpo")(table, alpha=1.0, scorer="exact", base=base)
    bonus = np.array([0, 0, 1.0, 0, 0])
    np.testing.assert_allclose(got, credit.get(base)(replace(table, return_bonus=bonus)))
    assert np.abs(got - plain)[[0, 2, 4]].min() > 1e-3
    np.testing.assert_allclose(got[[1, 3]], plain[[1, 3]])


def test_salt_averages_whatever_its_base_says():
    table = failure_beside_a_success()
    before = credit.get("gigpo")(table, norm="mean")
    got = credit.get("salt")(table, base="gigpo", norm="mean")
    assert [rows.tolist() for rows in merged(table)] == [[0, 2]]
    np.testing.assert_allclose(
        got, [before[[0, 2]].mean(), before[1], before[[0, 2]].mean(), before[3]]
    )


def test_gvpo_shapes_whatever_its_base_says():
    table = failure_beside_a_success()
    for base in ("gigpo", "hgpo", "salt"):
        before = credit.get(base)(table)
        assert before[3] < 0
        got = credit.get("gvpo")(table, base=base, b=0.5)
        np.testing.assert_allclose(got, [*before[:3], 1.5 * before[3]])


def test_nested_bases_are_the_same_as_one_after_the_other():
    table = failure_beside_a_success()
    nested = {"name": "salt", "history": 1, "base": {"name": "gigpo", "norm": "mean"}}
    inner = credit.get("salt")(table, history=1, base={"name": "gigpo", "norm": "mean"})
    got = credit.get("gvpo")(table, b=0.1, base=nested)
    np.testing.assert_allclose(got, [*inner[:3], 1.1 * inner[3]])
    flat = credit.get("gvpo")(table, b=0.1, history=1, base="salt")
    np.testing.assert_allclose(flat[3], 1.1 * credit.get("salt")(table, history=1)[3])


@pytest.mark.parametrize(
    ("name", "base"),
    [
        *itertools.product(("salt", "gvpo", "oprl", "empg"), ("hgpo", "reinforce_pp", "rloo")),
        ("scpo", "hgpo"),
        ("gvpo", {"name": "scpo", "base": "hgpo"}),
        ("salt", {"name": "oprl", "ddof": 0, "base": {"name": "gigpo", "eps": 0.5}}),
        ("oprl", {"name": "salt", "history": 1, "base": {"name": "hgpo", "alpha": 3.0}}),
    ],
)
def test_written_out_defaults_change_nothing(name, base):
    table = failure_beside_a_success()
    n = len(table)
    table = replace(table, process_reward=np.arange(n) / n, entropy=np.arange(n) / n)
    written = {**registry.hyperparameters_of(name, {"base": base}), "base": base}
    got = credit.get(name)(table, **written)
    np.testing.assert_array_equal(got, credit.get(name)(table, base=base))


def test_columns_and_hyperparameters_follow_the_base():
    assert registry.needs("salt", {"base": {"name": "gvpo", "base": "oprl"}}) == ("process_reward",)
    assert registry.needs("salt") == ()
    known = registry.hyperparameters_of("gvpo", {"base": {"name": "salt", "base": "gigpo"}})
    assert (known["b"], known["history"], known["base"]) == (0.2, 3, "dr_grpo")


@pytest.mark.parametrize("name", ["salt", "gvpo", "oprl", "scpo"])
@pytest.mark.parametrize(
    ("base", "message"),
    [
        ("gippo", "unknown estimator 'gippo'"),
        ({"name": "gippo"}, "unknown estimator 'gippo'"),
        ({"norm": "mean"}, "base must be"),
        ({"name": "gigpo", "gama": 1}, "no hyperparameter 'gama'"),
        ({"name": "salt", "base": "gippo"}, "unknown estimator 'gippo'"),
        (3, "base must be"),
    ],
)
def test_unknown_bases_are_refused(name, base, message):
    with pytest.raises(ConfigError, match=message):
        credit.check(name, {"base": base})


@pytest.mark.parametrize("base", ["grpo", "rloo", "dr_grpo"])
def test_scpo_refuses_bases_that_do_not_read_step_returns(base):
    with pytest.raises(ConfigError, match="step|turn") as refused:
        credit.check("scpo", {"base": base})
    offered = str(refused.value).partition("expected one of ")[2].split(", ")
    assert "gigpo" in offered
    for other in offered:
        credit.check("scpo", {"base": other})
