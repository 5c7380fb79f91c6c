"""Estimators against cases computed by an independent program; AGENTGYMS_TEST_CASES has them."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from harness import credit
from harness.credit import TurnTable
from harness.credit.estimators.gae import gae, gae_returns

CASES = os.environ.get("AGENTGYMS_TEST_CASES", "")
FOLDER = Path(CASES or ".", "credit")

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not CASES, reason="AGENTGYMS_TEST_CASES names no folder of oracle cases"),
]

ORACLES = {
    "grpo": ("grpo", {}),
    "dr_grpo": ("dr_grpo", {}),
    "rloo": ("rloo", {}),
    "gigpo_mean_std": ("gigpo", {}),
    "gigpo_mean": ("gigpo", {"norm": "mean"}),
    "hgpo": ("hgpo", {}),
    "hcapo": ("hcapo", {}),
    "empg": ("empg", {}),
}
"""Name in the cases -> estimator and hyperparameters; the variant's name adds further ones."""

OPTIONS = {
    "stats": lambda x: {"statistics": {"trajectory": "rollout", "step": "turn"}[x]},
    "ddof": lambda x: {"ddof": int(x)},
    "penalty_in_row": lambda _: {},  # 0.1 wherever statistics are over rows, which is the default
    "K": lambda x: {"K": int(x)},
    "norm": lambda x: {"norm": {"mean_std": "std", "mean": "mean"}[x]},
    "drop_zero": lambda x: {"drop_zero": x == "True"},
    "smooth": lambda x: {"smoothing": 0.0 if x == "None" else float(x)},
    "base": lambda x: {"base": {"grpo(ddof1)": "grpo"}[x]},
    "k": lambda x: {"k": float(x)},
    "k'": lambda x: {"k_future": float(x)},
    "zeta": lambda x: {"zeta": float(x)},
}
"""Option of a variant, as `ddof=1` -> hyperparameters."""

COLUMNS = {
    "process_reward": "implicit_step_rewards",
    "entropy": "step_entropy",
    "hindsight": "hindsight_prob",
}


def read_case(path):
    case = json.loads(path.read_text())
    inputs = case["inputs"]
    rollouts = [
        (g, i, trajectory)
        for g, trajectories in enumerate(inputs["groups"])
        for i, trajectory in enumerate(trajectories)
    ]
    rows = [(r, g, t, s) for r, (g, _, t) in enumerate(rollouts) for s in t["steps"]]
    table = TurnTable.from_columns(
        rollout=[r for r, _, _, _ in rows],
        group=[g for _, g, _, _ in rows],
        reward=[step["reward"] for _, _, _, step in rows],
        success=[trajectory["success"] for _, _, trajectory, _ in rows],
        valid=[step["valid"] for _, _, _, step in rows],
        failed=[not step["exec_ok"] for _, _, _, step in rows],
        state_key=[step["state"] for _, _, _, step in rows],
        next_state_key=[step["next_obs"] for _, _, _, step in rows],
        action_key=[step["action"] for _, _, _, step in rows],
        **{
            name: [value for g, i, _ in rollouts for value in inputs[key][g][i]]
            for name, key in COLUMNS.items()
        },
    )
    return table, case["expected"]


def flat(nested):
    if isinstance(nested, dict):
        nested = nested["total"]
    return [a for part in nested for a in flat(part)] if isinstance(nested, list) else [nested]


def hyperparameters(variant):
    parts = (part.split("=") for part in variant.split(" ")[0].split(","))
    return {k: v for key, value in parts for k, v in OPTIONS[key](value).items()}


@pytest.mark.parametrize("oracle", ORACLES)
@pytest.mark.parametrize("path", sorted(FOLDER.glob("c*.json")), ids=lambda path: path.stem)
def test_case(path, oracle):
    table, expected = read_case(path)
    name, base = ORACLES[oracle]
    if not expected.get(oracle):
        pytest.skip(f"the case says nothing of {oracle}")
    for variant, groups in expected[oracle].items():
        got = credit.get(name)(table, **base, **hyperparameters(variant))
        np.testing.assert_allclose(got, flat(groups), atol=1e-6, err_msg=variant)


def test_there_are_cases():
    assert len(list(FOLDER.glob("c*.json"))) >= 4


def test_gae_cases():
    cases = json.loads((FOLDER / "token_level.json").read_text())["gae"]
    assert cases
    for case in cases:
        table = TurnTable.from_columns(
            rollout=[0] * len(case["rewards"]), reward=case["rewards"], value=case["values"]
        )
        options = {"gamma": case["gamma"], "lam": case["lam"]}
        np.testing.assert_allclose(gae(table, **options), case["adv"], atol=1e-9)
        np.testing.assert_allclose(gae_returns(table, **options), case["returns"], atol=1e-9)
