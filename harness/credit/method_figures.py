"""Figures that belong to one estimator each, as its paper plots them or its equations suggest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from harness.credit import dmpo, evidence, hgpo, imitation, salt, scpo
from harness.credit.gae import gae_returns
from harness.credit.groups import group_mean, group_size
from harness.credit.registry import keywords
from harness.credit.returns import episode_returns, step_returns
from harness.credit.table import Floats, TurnTable

Settings = Mapping[str, Any]
Figures = dict[str, float]


def of_layer(name: str, turns: TurnTable, settings: Settings) -> Figures:
    """Return the figures of one estimator, without those of its base.

    Args:
        name: The estimator; one that has none of its own gives none.
        turns: At least one turn, with the columns that the estimator needs.
        settings: All its hyperparameters, without those of its base.
    """
    return FIGURES[name](turns, settings) if name in FIGURES else {}


def of_ecpo(turns: TurnTable, settings: Settings) -> Figures:
    """Return the mean rho of repeated states, and the share of them that rho shuts out.

    ECPO's Figure 4(a) plots the mean (.538 and .720 at its two group sizes).
    """
    returns = step_returns(turns, settings["gamma"], settings["invalid_penalty"])
    found = evidence.evidence(turns, returns, evidence.Calibration.of(settings))
    rho = found.reliability[found.visits > 1]
    if not len(rho):
        return {"reliability": 0.0, "gated_anchors": 0.0}
    return {"reliability": float(rho.mean()), "gated_anchors": float((rho == 0).mean())}


def of_salt(turns: TurnTable, settings: Settings) -> Figures:
    """Return the share of turns whose edge is merged: SALT's Figure 6, read as over turns."""
    chosen = {key: settings[key] for key in keywords(salt.edges)}
    return {"merge_rate": float((group_size(salt.edges(turns, **chosen)) > 1).mean())}


def of_scpo(turns: TurnTable, settings: Settings) -> Figures:
    """Return credited turns per failed rollout, and the mean credit of a turn times alpha.

    SCPO's Figure 7: about 12 and .034 late in training. Failed rollouts of groups without success
    count too, with nothing; the mean is over all turns of the table.
    """
    chosen = {key: settings[key] for key in keywords(scpo.plan) if key in settings}
    aligned = scpo.plan(turns, **chosen, whole=False)
    failed = (episode_returns(turns) <= settings["success_threshold"]).sum()
    credit = scpo.credit(turns, aligned)
    return {
        "credited_turns": float((credit > 0).sum() / max(failed, 1)),
        "auxiliary_reward": float(settings["alpha"] * credit.mean()),
        "compared_rollouts": len(aligned) / len(turns.starts),
    }


def of_gvpo(turns: TurnTable, settings: Settings) -> Figures:
    """Return what Figure 4 of GVPO counts: turns per rollout, and look-ups of documentation.

    Look-ups are the shares of turns whose action calls `show_api_docs` or `show_api_descriptions`,
    by its key or its text. `shaped_turns` is the share of turns that failed: those whose advantage
    the four cases change.
    """
    actions = [f"{k}\n{t}" for k, t in zip(turns.action_key, _actions(turns), strict=True)]
    calls = {
        f"{name}_calls": float(np.mean([name in action for action in actions]))
        for name in ("show_api_docs", "show_api_descriptions")
    }
    shaped = float(turns.failed.mean()) if settings["b"] > 0 else 0.0
    return {"turns_per_rollout": len(turns) / len(turns.starts), "shaped_turns": shaped, **calls}


def of_oprl(turns: TurnTable, _settings: Settings) -> Figures:
    """Return mean and standard deviation of the step rewards, which OPRL's Figure 5 plots."""
    return _moments("process_reward", turns.process_reward)


def of_prime(turns: TurnTable, _settings: Settings) -> Figures:
    """Return mean and standard deviation of the implicit process rewards."""
    return _moments("process_reward", turns.process_reward)


def of_hcapo(turns: TurnTable, settings: Settings) -> Figures:
    """Return the mean hindsight probability, and the share of ratios that are clipped."""
    assert turns.hindsight is not None
    mean = group_mean(turns.hindsight, turns.rollout)
    low, high = settings["clip_low"] * mean, settings["clip_high"] * mean
    clipped = (turns.hindsight < low) | (turns.hindsight > high)
    return {"hindsight": float(turns.hindsight.mean()), "hindsight_clipped": float(clipped.mean())}


def of_empg(turns: TurnTable, _settings: Settings) -> Figures:
    """Return mean and standard deviation of the turns' entropies, in nats."""
    return _moments("entropy", turns.entropy)


def of_gae(turns: TurnTable, settings: Settings) -> Figures:
    """Return the mean value, and the share of the returns' variance that the critic explains."""
    assert turns.value is not None
    target = gae_returns(turns, gamma=settings["gamma"], lam=1.0)
    spread = target.var()
    explained = 1 - (target - turns.value).var() / spread if spread > 0 else 0.0
    return {"value": float(turns.value.mean()), "explained_variance": float(explained)}


def of_hgpo(turns: TurnTable, settings: Settings) -> Figures:
    """Return the mean length of the longest common history, in states: 0 for a turn in no group."""
    longest = np.zeros(len(turns))
    for k, (rows, label) in enumerate(hgpo.histories(turns, settings["K"] + 1), start=1):
        longest[rows[group_size(label) > 1]] = k
    return {"common_history": float(longest.mean())}


def of_reinforce_pp(turns: TurnTable, _settings: Settings) -> Figures:
    """Return the mean divergence of a turn from the reference, in nats, where it is measured."""
    return {"divergence": float(turns.kl.mean())} if turns.kl is not None else {}


def of_imitation(turns: TurnTable, settings: Settings) -> Figures:
    """Return the share of turns that are imitated."""
    return {"imitated_turns": float(imitation.imitation(turns, **settings).mean())}


def of_dmpo(turns: TurnTable, settings: Settings) -> Figures:
    """Return the number of pairs, and the share that the scores put in the right order."""
    pairs, score = dmpo.pairs_of(turns), dmpo.scores(turns, **settings)
    accuracy = {"pair_accuracy": pairs.accuracy(score)} if len(pairs) else {}
    return {"pairs": float(len(pairs)), **accuracy}


FIGURES: Final[dict[str, Callable[[TurnTable, Settings], Figures]]] = {
    "dmpo": of_dmpo,
    "ecpo": of_ecpo,
    "empg": of_empg,
    "gae": of_gae,
    "gvpo": of_gvpo,
    "hcapo": of_hcapo,
    "hgpo": of_hgpo,
    "imitation": of_imitation,
    "oprl": of_oprl,
    "prime": of_prime,
    "reinforce_pp": of_reinforce_pp,
    "salt": of_salt,
    "scpo": of_scpo,
}
"""Estimators with figures of their own; the others' are those that every method logs."""


def _moments(name: str, column: Floats | None) -> Figures:
    assert column is not None
    return {f"{name}_mean": float(column.mean()), f"{name}_std": float(column.std())}


def _actions(turns: TurnTable) -> list[str]:
    return [text.partition(scpo.SEPARATOR)[0] for text in turns.text]
