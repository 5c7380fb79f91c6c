"""Figures about credit: by hand, and each method's own."""

from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from strategies import turn_tables

from harness import credit
from harness.credit import TurnTable, diagnostics
from harness.credit.diagnostics import FIGURES
from harness.credit.estimators import ecpo
from harness.credit.registry import layers
from harness.types.errors import ConfigError


def lucky_anchor():
    """Figure 1 of ECPO: seven rollouts take A, six succeed; one takes B and succeeds."""
    return TurnTable.from_columns(
        rollout=range(8),
        reward=[10] * 6 + [0, 10],
        state_key=["s"] * 8,
        action_key=list("AAAAAAAB"),
    )


def failed_and_solved():
    return TurnTable.from_columns(
        rollout=[0, 0, 1, 1, 2],
        group=[0, 0, 0, 0, 1],
        reward=[0, 10, 0, 0, 0],
        state_key=["a", "b", "a", "c", "a"],
        next_state_key=["b", "end", "b", "d", "e"],
        action_key=["p", "x", "p", "y", "z"],
        text=["docs || a", "go || done", "docs || a", "say || b", "z || c"],
        failed=[False, False, False, True, False],
        value=[9, 10, 1, 0, 0],
        process_reward=[1, 1, 0, 0, 0],
        entropy=[1, 1, 2, 2, 4],
        hindsight=[0.5, 0.5, 0.1, 0.9, 0.3],
        kl=[0.5, 0, 0, 0, 0],
    )


def test_divergent_anchors_by_hand():
    assert diagnostics.divergent_anchors(lucky_anchor()) == 1.0
    unlucky = replace(lucky_anchor(), reward=np.array([10.0] * 7 + [0.0]))
    assert diagnostics.divergent_anchors(unlucky) == 0.0
    alone = replace(lucky_anchor(), action_key=np.array(list("ABCDEFGH"), dtype=object))
    assert diagnostics.divergent_anchors(alone) == 0.0  # nothing was taken twice
    never = TurnTable.from_columns(rollout=[0, 1], reward=[0, 1])
    assert diagnostics.divergent_anchors(never) == 0.0


@given(turn_tables())
def test_divergent_anchors_are_those_that_ecpo_shows(table):
    shown = [anchor.divergent for anchor in ecpo.anchors(table)]
    expected = np.mean(shown) if shown else 0.0
    assert diagnostics.divergent_anchors(table) == pytest.approx(expected)


def test_figures_of_every_method_by_hand():
    table = failed_and_solved()
    got = diagnostics.summarise(table, np.array([1.0, 2, -1, -2, 0]))
    assert got["credit/advantage_range"] == 4
    assert got["credit/advantage_std"] == pytest.approx(np.sqrt(2))
    assert got["credit/silent_groups"] == 0.5
    assert got["credit/failed_turns"] == 0.2
    assert got["credit/episode_return"] == pytest.approx(10 / 3)
    assert got["credit/shared_states"] == pytest.approx(0.4)


def test_calls_of_documentation_are_counted_where_apis_are_called():
    """By the names that the API has: AppWorld answers them."""
    codes = (
        'print(apis.api_docs.show_api_descriptions(app_name="purse"))',
        'print(apis.api_docs.show_api_doc(app_name="purse", api_name="top_up"))',
        "x = 1",
        'print(apis.api_docs.show_api_doc(app_name="purse", api_name="top_up"))',
    )
    env = gym.make("agentgyms/AppWorld-v0", disable_env_checker=True)
    env.reset(seed=0)
    texts = []
    for code in codes:
        observation, *_, info = env.step(code)
        assert info["feedback"] == "ok", observation
        texts.append(f"{code} || {observation}")
    env.close()
    table = TurnTable.from_columns(rollout=[0] * 4, reward=[0.0] * 4, text=texts)
    got = diagnostics.summarise(table, np.zeros(4))
    assert got["credit/show_api_doc_calls"] == 0.5
    assert got["credit/show_api_descriptions_calls"] == 0.25
    nothing = diagnostics.summarise(failed_and_solved(), np.zeros(5))
    assert not any(name.endswith("_calls") for name in nothing)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "ecpo",  # both took the same action; their returns are 9.5 and 0
            {"reliability": 0.0, "gated_anchors": 1.0, "anchor_std": 0.0, "anchor_std_raw": 4.75},
        ),
        ("salt", {"merge_rate": 0.4}),
        ("scpo", {"credited_turns": 0.5, "auxiliary_reward": 0.1, "compared_rollouts": 1 / 3}),
        ("gvpo", {"turns_per_rollout": 5 / 3, "shaped_turns": 0.2}),
        ("oprl", {"process_reward_mean": 0.4, "process_reward_std": np.sqrt(0.24)}),
        ("prime", {"process_reward_mean": 0.4, "process_reward_std": np.sqrt(0.24)}),
        ("hcapo", {"hindsight": 0.46, "hindsight_clipped": 0.4}),
        ("empg", {"entropy_mean": 2.0, "entropy_std": np.sqrt(1.2)}),
        ("gae", {"value": 4.0, "explained_variance": 1 - 0.4 / 24}),
        ("hgpo", {"common_history": 0.4}),
        ("reinforce_pp", {"divergence": 0.1}),
    ],
)
def test_each_methods_own_figures_by_hand(name, expected):
    got = diagnostics.figures_of(layers(name, {}), failed_and_solved())
    assert got == pytest.approx({f"credit/{key}": value for key, value in expected.items()})


def test_the_figures_of_a_base_stand_beside_those_of_what_builds_on_it():
    table = failed_and_solved()
    settings_ = {"base": {"name": "ecpo", "kappa": 1.0}, "gamma": 0.9, "alpha": 1.0}
    assert [name for name, _ in layers("scpo", settings_)] == ["scpo", "ecpo"]
    below = layers("scpo", settings_)[1][1]
    assert (below["kappa"], below["gamma"], below["tau"]) == (1.0, 0.9, 2.0)
    got = diagnostics.figures_of(layers("scpo", settings_), table)
    assert got["credit/auxiliary_reward"] == pytest.approx(0.2)
    assert got["credit/reliability"] == 0.0
    assert diagnostics.figures_of(layers("gigpo", {}), table) == {}
    with pytest.raises(ConfigError, match="has no hyperparameter"):
        layers("scpo", {"colour": 1})


@settings(max_examples=25)
@given(turn_tables())
def test_every_estimators_figures_are_finite_and_of_rollouts_in_any_number(table):
    for name in credit.names():
        advantage = credit.get(name)(table)
        got = diagnostics.summarise(table, advantage, layers(name, {}))
        assert np.isfinite(list(got.values())).all()
        assert all(isinstance(value, float) for value in got.values())
        own = set(got) - set(diagnostics.summarise(table, advantage))
        assert bool(own) == any(layer in FIGURES for layer, _ in layers(name, {}))


def test_an_empty_table_has_no_figures():
    empty = TurnTable.from_columns(rollout=[], reward=[])
    assert diagnostics.summarise(empty, np.zeros(0), layers("scpo", {})) == {}
    assert diagnostics.figures_of(layers("salt", {}), empty) == {}
    assert diagnostics.silent_groups(empty) == 0.0
    assert diagnostics.repeated_states(empty) == 0.0
    assert diagnostics.divergent_anchors(empty) == 0.0
