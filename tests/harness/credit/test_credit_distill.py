"""Distillation by hand; SDAR and AgentOPSD against references written row by row."""

import math

import numpy as np
import pytest
from small_tables import by_key, check_against, episode_advantages, scaled, small_tables

from harness import credit
from harness.credit import TurnTable
from harness.types.errors import ConfigError, TableError

KL = [0.5, -1.0, 3.0, 0.25, -0.5]


def table(**columns):
    given = {"rollout": [0, 0, 0, 1, 1], "reward": [0, 0, 1, 0, 0], "teacher_kl": KL}
    return TurnTable.from_columns(**{**given, **columns})


def advantage(**settings):
    return credit.get("distill")(table(), **settings)


def test_rows_answer_for_themselves_or_for_what_follows():
    np.testing.assert_allclose(advantage(), [-0.5, 1.0, -3.0, -0.25, 0.5])
    np.testing.assert_allclose(advantage(weight=0.1), [-0.05, 0.1, -0.3, -0.025, 0.05])
    np.testing.assert_allclose(advantage(clip=1.0), [-0.5, 1.0, -1.0, -0.25, 0.5])
    np.testing.assert_allclose(advantage(discount=1.0), [-2.5, -2.0, -3.0, 0.25, 0.5])
    np.testing.assert_allclose(advantage(discount=0.5), [-0.75, -0.5, -3.0, 0.0, 0.5])
    np.testing.assert_allclose(
        advantage(discount=0.5, clip=2.0, weight=2.0), [-0.5 * 2, 0.0, -4.0, 0.0, 1.0]
    )


def test_a_base_adds_its_advantage():
    own = credit.get("gigpo")(table(), gamma=0.9)
    np.testing.assert_allclose(advantage(base="gigpo", gamma=0.9), own + advantage())
    with_name = {"name": "gigpo", "gamma": 0.9}
    np.testing.assert_allclose(
        advantage(base=with_name, weight=0.0), own, err_msg="without a weight it is the base"
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"weight": float("inf")}, "weight must be"),
        ({"discount": 1.5}, "discount must be"),
        ({"clip": -1.0}, "clip must be"),
        ({"base": "none"}, "unknown estimator"),
        ({"gamma": 1.0}, "no hyperparameter 'gamma'"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(ConfigError, match=message):
        advantage(**settings)


def test_the_column_is_needed():
    with pytest.raises(TableError, match="needs the column 'teacher_kl'"):
        credit.get("distill")(table(teacher_kl=None))


def sdar_reference(rows, weight=0.01, sharpness=5.0):
    own = episode_advantages(rows)
    preferred = [math.exp(-sharpness * row["teacher_kl"]) for row in rows]
    return [a + weight * x / (1 + x) for a, x in zip(own, preferred, strict=True)]


def agent_opsd_reference(rows, band=0.2, mix=0.5):
    own, out = episode_advantages(rows), [0.0] * len(rows)
    for members in by_key(rows, "group").values():
        won = {rows[i]["rollout"]: rows[i]["success"] for i in members}
        prior = min(max(sum(won.values()) / len(won), 1e-4), 1 - 1e-4)
        for rollout in won:
            turns = [i for i in members if rows[i]["rollout"] == rollout]
            odds, before, revised = prior / (1 - prior), prior, []
            for i in turns:
                odds *= math.exp(-rows[i]["teacher_kl"])
                belief = min(max(odds / (1 + odds), 1e-6), 1 - 1e-6)
                revised.append(belief - before)
                before = belief
            for i, z in zip(turns, scaled(revised, ddof=0), strict=True):
                moved = 1 + band * z * ((own[i] > 0) - (own[i] < 0))
                factor = min(max(moved, 1 - band), 1 + band)
                out[i] = own[i] * ((1 - mix) + mix * factor)
    return out


@pytest.mark.parametrize(
    ("reference", "name", "settings"),
    [
        (sdar_reference, "sdar", {}),
        (sdar_reference, "sdar", {"weight": 2.0, "sharpness": 0.5}),
        (agent_opsd_reference, "agent_opsd", {}),
        (agent_opsd_reference, "agent_opsd", {"band": 0.9, "mix": 1.0}),
    ],
)
def test_an_estimator_is_its_reference(reference, name, settings):
    check_against(reference, name, **settings)


def test_without_their_weights_they_are_their_base():
    for _, rows in small_tables()[:40]:
        for base in ("grpo", "rloo"):
            own = credit.get(base)(rows)
            np.testing.assert_array_equal(credit.get("sdar")(rows, base=base, weight=0.0), own)
            np.testing.assert_array_equal(credit.get("agent_opsd")(rows, base=base, mix=0.0), own)


def test_a_teacher_who_rules_a_token_out_closes_the_gate():
    far = table(teacher_kl=[1e4, -1e4, 0.0, 1e4, -1e4])
    gate = credit.get("sdar")(far, weight=1.0) - credit.get("grpo")(far)
    np.testing.assert_allclose(gate, [0.0, 1.0, 0.5, 0.0, 1.0], atol=1e-12)
    assert np.isfinite(credit.get("agent_opsd")(far)).all()


def test_the_turn_that_moved_the_belief_as_it_ended_counts_more():
    """By hand: one of two succeeded, so V_0 = 1/2, and evidence log 3, -log 3 gives 3/4, 1/2."""
    log3 = math.log(3.0)
    moved = {"teacher_kl": [-log3, log3, -log3, log3], "success": [1, 1, 0, 0]}
    rows = table(rollout=[0, 0, 1, 1], reward=[0, 1, 0, 0], **moved)
    weighted = credit.get("agent_opsd")(rows, base={"name": "grpo", "norm": "mean"}, mix=1.0)
    np.testing.assert_allclose(weighted, [0.6, 0.4, -0.4, -0.6], atol=1e-5)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("sdar", {"sharpness": -1.0}, "sharpness must be"),
        ("sdar", {"weight": float("nan")}, "weight must be"),
        ("agent_opsd", {"band": 1.5}, "band must be"),
        ("agent_opsd", {"mix": -0.5}, "mix must be"),
    ],
)
def test_their_wrong_settings_are_named(name, settings, message):
    with pytest.raises(ConfigError, match=message):
        credit.get(name)(table(), **settings)
