"""Infos batched column by column are those that Gymnasium adds one by one."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from gymnasium.vector import VectorEnv
from hypothesis import given, settings
from vector_comparison import assert_equal

from agentgyms.remote.vector_infos import batched_infos

NUM_ENVS = 5
NUMBERS = st.integers(-(2**62), 2**62) | st.floats() | st.booleans()
PLAIN = NUMBERS | st.text(max_size=3) | st.lists(st.text(max_size=2), max_size=3)
MEMBERS = st.lists(st.integers(0, NUM_ENVS - 1), unique=True)


@st.composite
def alike(draw: st.DrawFn) -> dict[int, dict[str, Any]]:
    """Infos with the same keys, and values of the same types, as those of one environment."""
    kinds = {
        "turn": st.integers(0, 9),
        "score": st.floats(),
        "success": st.booleans(),
        "goal": st.text(max_size=3),
        "admissible_actions": st.lists(st.text(max_size=2), max_size=3),
        "metrics": st.fixed_dictionaries({"a": st.floats(), "b": st.floats()}),
        "nothing": st.just({}),
    }
    names = draw(st.lists(st.sampled_from(sorted(kinds)), unique=True))
    info = st.fixed_dictionaries({name: kinds[name] for name in names})
    return {i: draw(info) for i in draw(MEMBERS)}


MIXED = st.dictionaries(
    st.sampled_from("abc"), PLAIN.filter(lambda value: type(value) is not list), max_size=3
)
UNLIKE = st.dictionaries(
    st.integers(0, NUM_ENVS - 1),
    st.dictionaries(st.sampled_from("xyz"), st.text(max_size=2) | st.none() | MIXED, max_size=3),
)


def _one_by_one(infos: dict[int, dict[str, Any]]) -> dict[str, Any]:
    vector = VectorEnv()
    vector.num_envs = NUM_ENVS
    batched: dict[str, Any] = {}
    for i, info in infos.items():
        batched = vector._add_info(batched, info, i)
    return batched


@settings(max_examples=40)
@given(alike())
def test_infos_of_one_environment_need_nobody_s_help(infos):
    def unneeded(*_: Any) -> dict[str, Any]:
        raise AssertionError("Gymnasium's method was asked")

    assert_equal(_one_by_one(infos), batched_infos(infos, NUM_ENVS, unneeded), "infos")


@settings(max_examples=60)
@given(UNLIKE)
def test_infos_of_any_kind(infos):
    vector = VectorEnv()
    vector.num_envs = NUM_ENVS
    try:
        expected: Any = _one_by_one(infos)
    except Exception as e:
        with pytest.raises(type(e)):
            batched_infos(infos, NUM_ENVS, vector._add_info)
    else:
        assert_equal(expected, batched_infos(infos, NUM_ENVS, vector._add_info), "infos")


def test_arrays_are_nobody_else_s():
    infos = {i: {"a": 1, "b": {"c": 2.0}} for i in range(NUM_ENVS)}
    batched = batched_infos(infos, NUM_ENVS, VectorEnv()._add_info)
    batched["_a"][:] = False
    assert np.all(batched["_b"])
    assert np.all(batched["b"]["_c"])
