"""ECPO, GVPO, SALT and OPRL against the shared oracle cases."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from harness import credit
from harness.credit import TurnTable
from harness.credit.estimators import ecpo
from harness.credit.estimators.graphs import salt

CASES = Path(os.environ.get("AGENTGYMS_TEST_CASES") or ".", "credit")

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(
        "AGENTGYMS_TEST_CASES" not in os.environ,
        reason="AGENTGYMS_TEST_CASES names no folder of oracle cases",
    ),
]

each_case = pytest.mark.parametrize("path", sorted(CASES.glob("c*.json")), ids=lambda p: p.stem)

BASES = {"mean_std": "grpo", "loo": "rloo", "mean": "dr_grpo"}
OPRL = {
    "grpo": {"base": "grpo"},
    "mean": {"base": "dr_grpo", "step_norm": "mean"},
    "rloo_all": {"base": "rloo", "step_norm": "rloo"},
    "rloo_first": {"base": "rloo", "step_norm": "rloo_first"},
}


def read(path):
    """The case's table, its hyperparameters, where its rollouts are, and what is expected."""
    case = json.loads(path.read_text())
    inputs = case["inputs"]
    where = [(g, i) for g, group in enumerate(inputs["groups"]) for i in range(len(group))]
    rows = [
        (rollout, g, i, t, step)
        for rollout, (g, i) in enumerate(where)
        for t, step in enumerate(inputs["groups"][g][i]["steps"])
    ]
    steps = [step for *_, step in rows]
    table = TurnTable.from_columns(
        rollout=[r for r, *_ in rows],
        group=[g for _, g, *_ in rows],
        reward=[step["reward"] for step in steps],
        state_key=[step["state"] for step in steps],
        next_state_key=[step["next_obs"] for step in steps],
        action_key=[step["action"] for step in steps],
        valid=[step["valid"] for step in steps],
        failed=[not step["exec_ok"] for step in steps],
        process_reward=[inputs["implicit_step_rewards"][g][i][t] for _, g, i, t, _ in rows],
    )
    common = {
        "gamma": inputs["gamma"],
        "step_weight": inputs["omega"],
        "eps": inputs["epsilon"],
        "invalid_penalty": inputs["invalid_penalty"],
    }
    return table, common, where, case["expected"]


def flat(groups):
    return [value for group in groups for rollout in group for value in rollout]


def options(variant):
    return dict(part.split("=") for part in variant.split(","))


def close(got, expected, what):
    np.testing.assert_allclose(got, expected, atol=1e-6, rtol=0, err_msg=what)


@each_case
def test_ecpo(path):
    table, common, _, expected = read(path)
    variants = [("ecpo", v, g) for v, g in expected["ecpo"].items()]
    variants += [("ecpo_eca_only", v, g) for v, g in expected["ecpo_eca_only"].items()]
    assert len(variants) >= 8
    for name, variant, groups in variants:
        chosen = options(variant)
        settings = {
            **common,
            "sigma": chosen["act_std"].removesuffix("_occurrence"),
            "sigma_ddof": int(chosen["ddof_act"]),
            "gate": chosen["sat"] != "-",
        }
        settings |= {"saturation": chosen["sat"]} if settings["gate"] else {}
        settings |= {"between": chosen["between"]} if "between" in chosen else {}
        close(credit.get("ecpo")(table, **settings), flat(g["total"] for g in groups), variant)
        anchors = {(a.group, a.state_key): a for a in ecpo.anchors(table, **settings)}
        assert set(anchors) == {(g, s) for g, group in enumerate(groups) for s in group["anchors"]}
        for g, group in enumerate(groups):
            for state, want in group["anchors"].items():
                check_anchor(anchors[g, state], want, f"{name} {variant} {g} {state}")


def check_anchor(anchor, want, what):
    assert anchor.strict_valid == want["strict_valid"], what
    figures = {
        "N": anchor.visits,
        "mu": anchor.mean,
        "B": anchor.between,
        "W": anchor.within,
        "sat": anchor.saturation,
        "sigma_act": anchor.sigma,
        "rho": anchor.reliability,
        "depth": anchor.depth,
    }
    for key, value in figures.items():
        close(value, want[key], f"{what} {key}")
    assert {a.key for a in anchor.actions} == set(want["n"]), what
    for action in anchor.actions:
        assert len(action.rows) == want["n"][action.key], what
        close(action.mean, want["q"][action.key], f"{what} q")
        close(action.shrunk, want["q_shrunk"][action.key], f"{what} q~")
        close(action.advantage, want["A_act"][action.key], f"{what} A_act")


@each_case
def test_gvpo(path):
    table, _, _, expected = read(path)
    for variant, groups in expected["gvpo"].items():
        got = credit.get("gvpo")(table, b=float(options(variant)["b"]))
        close(got, flat(groups), variant)


@each_case
def test_salt(path):
    table, common, where, expected = read(path)
    assert len(expected["salt"]) >= 12
    for variant, want in expected["salt"].items():
        chosen = options(variant)
        base, ddof = chosen["base"].rstrip(")").split("(ddof")
        own = {"ddof": int(ddof), "eps": common["eps"]} if base == "mean_std" else {}
        history = int(chosen["h"])
        got = credit.get("salt")(
            table, history=history, average=chosen["avg"], base={"name": BASES[base], **own}
        )
        close(got, flat(want["adv"]), variant)
        merged = {
            frozenset((*where[table.rollout[row]], int(table.turn[row])) for row in rows)
            for rows in salt.merged(table, history)
        }
        assert merged == {
            frozenset((g, *member) for member in members)
            for g, sets in enumerate(want["merged"])
            for members in sets
        }, variant


@each_case
def test_oprl(path):
    table, common, _, expected = read(path)
    for variant, groups in expected["oprl"].items():
        chosen = options(variant)
        settings = {**OPRL[chosen["base"]], "ddof": int(chosen["ddof"]), "eps": common["eps"]}
        got = credit.get("oprl")(table, **settings)
        close(got, flat(g["total"] for g in groups), variant)
        base = {key: settings[key] for key in ("ddof", "eps")} if settings["base"] == "grpo" else {}
        close(
            credit.get(settings["base"])(table, **base), flat(g["episode"] for g in groups), "A_E"
        )


def test_gvpo_truth_table():
    rows = json.loads((CASES / "gvpo_truth_table.json").read_text())
    assert len(rows) == 12
    for row in rows:
        # Two rollouts of returns Â and -Â have the mean 0, so the first one's advantage is Â.
        table = TurnTable.from_columns(
            rollout=[0, 1], reward=[row["A_hat"], -row["A_hat"]], failed=[not row["exec_ok"], False]
        )
        close(credit.get("gvpo")(table, b=row["b"])[0], row["A"], str(row))


def test_ecpo_closed_forms():
    cases = json.loads((CASES / "ecpo_closed_forms.json").read_text())
    for row in cases["rows"]:
        n, successes = row["n_frequent"], row["successes"]
        table = TurnTable.from_columns(
            rollout=range(n + 1),
            reward=[1.0] * successes + [0.0] * (n - successes) + [1.0],
            state_key=["s"] * (n + 1),
            action_key=["frequent"] * n + ["rare"],
        )
        (anchor,) = ecpo.anchors(table)
        rare = anchor.actions[-1]
        close(anchor.mean, row["mu"], str(row))
        close(rare.mean - anchor.mean, row["raw_centered"], str(row))
        close(rare.shrunk - anchor.mean, row["shrunk_centered_kappa2"], str(row))
        raw = ecpo.anchors(table, shrink=False, sigma="raw", eps=0.0)[0]
        close(raw.actions[-1].advantage, row["gigpo_singleton_adv"], str(row))
        close(raw.actions[0].advantage, row["gigpo_frequent_mean_adv"], str(row))
    for row in cases["table6"]:
        table = TurnTable.from_columns(
            rollout=[0, 1, 2],
            reward=[row["proxy"], 0.0, -row["proxy"]],
            state_key=["s"] * 3,
            action_key=["lucky", "other", "third"],
        )
        (anchor,) = ecpo.anchors(table)
        assert round(anchor.actions[0].shrunk - anchor.mean, 4) == row["scaled"]
