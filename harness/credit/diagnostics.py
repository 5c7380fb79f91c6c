"""Figures about credit, logged at every step: of all methods, and of single papers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from harness.credit import evidence
from harness.credit.estimators import hgpo, imitation, scpo
from harness.credit.estimators.gae import gae_returns
from harness.credit.estimators.graphs import salt
from harness.credit.estimators.preferences import dmpo, kto
from harness.credit.estimators.preferences.compared import CHOICES, compare
from harness.credit.groups import differs, encode, group_mean, group_size, label_mean
from harness.credit.preferences import Pairs
from harness.credit.registry import Layer
from harness.credit.shared import STEP_RETURNS, episode_returns, step_returns
from harness.credit.table import LOOKUPS, TurnTable
from harness.types.arrays import Floats, Ints
from harness.types.hyperparameters import keyword_defaults

Settings = Mapping[str, Any]
Figures = dict[str, float]


def layer_figures(name: str, turns: TurnTable, settings: Settings) -> Figures:
    """Return the figures of one estimator, without those of its base; none for most estimators."""
    return FIGURES[name](turns, settings) if name in FIGURES else {}


def _ecpo_figures(turns: TurnTable, settings: Settings) -> Figures:
    """Return figures over the repeated states: mean rho, the share with rho 0, and deviations.

    ECPO's Figure 4(a) plots the mean (.538 and .720 at its two group sizes). Its Figure 3(b) plots
    the standard deviation over turns of advantages with shrinkage, `anchor_std` of q~ - mu, and
    without, `anchor_std_raw` of R_t - mu. Divided by sigma, both would not grow as the paper's do.
    """
    returns = step_returns(turns, *(settings[key] for key in STEP_RETURNS))
    found = evidence.evidence(turns, returns, evidence.Calibration.of(settings))
    rho = found.reliability[found.visits > 1]
    if not len(rho):
        return dict.fromkeys(("reliability", "gated_anchors", "anchor_std", "anchor_std_raw"), 0.0)
    rows = found.visits[found.anchor] > 1
    mean = found.mean[found.anchor[rows]]
    return {
        "reliability": float(rho.mean()),
        "gated_anchors": float((rho == 0).mean()),
        "anchor_std": float((found.estimate[found.pair[rows]] - mean).std()),
        "anchor_std_raw": float((returns[rows] - mean).std()),
    }


def _salt_figures(turns: TurnTable, settings: Settings) -> Figures:
    """Return the share of turns whose edge is merged: SALT's Figure 6, read as over turns."""
    chosen = {key: settings[key] for key in keyword_defaults(salt.edges)}
    return {"merge_rate": float((group_size(salt.edges(turns, **chosen)) > 1).mean())}


def _scpo_figures(turns: TurnTable, settings: Settings) -> Figures:
    """Return credited turns per failed rollout, and the mean credit of a turn times alpha.

    SCPO's Figure 7: about 12 and .034 late in training. Failed rollouts of groups without success
    count too, with nothing; the mean is over all turns of the table.
    """
    chosen = {key: settings[key] for key in keyword_defaults(scpo.plan) if key in settings}
    aligned = scpo.plan(turns, **chosen, whole=False)
    failed = (episode_returns(turns) <= settings["success_threshold"]).sum()
    credit = scpo.credit(turns, aligned)
    return {
        "credited_turns": float((credit > 0).sum() / max(failed, 1)),
        "auxiliary_reward": float(settings["alpha"] * credit.mean()),
        "compared_rollouts": len(aligned) / len(turns.starts),
    }


def _gvpo_figures(turns: TurnTable, settings: Settings) -> Figures:
    """Return turns per rollout, and the share of turns whose advantage the four cases change."""
    shaped = float(turns.failed.mean()) if settings["b"] > 0 else 0.0
    return {"turns_per_rollout": len(turns) / len(turns.starts), "shaped_turns": shaped}


def _moments(column: str) -> Callable[[TurnTable, Settings], Figures]:
    """Return the function for mean and standard deviation of a column (OPRL, Figure 5)."""

    def figures(turns: TurnTable, _settings: Settings) -> Figures:
        values = getattr(turns, column)
        return {f"{column}_mean": float(values.mean()), f"{column}_std": float(values.std())}

    return figures


def _hcapo_figures(turns: TurnTable, settings: Settings) -> Figures:
    assert turns.hindsight is not None
    mean = group_mean(turns.hindsight, turns.rollout)
    low, high = settings["clip_low"] * mean, settings["clip_high"] * mean
    clipped = (turns.hindsight < low) | (turns.hindsight > high)
    return {"hindsight": float(turns.hindsight.mean()), "hindsight_clipped": float(clipped.mean())}


def _gae_figures(turns: TurnTable, settings: Settings) -> Figures:
    """Return the mean value, and the share of the returns' variance that the critic explains."""
    assert turns.value is not None
    own = {key: settings[key] for key in STEP_RETURNS}
    target = gae_returns(turns, **own, lam=1.0)
    varied = differs(target, np.full(len(target), target.mean())).any()
    explained = 1 - (target - turns.value).var() / target.var() if varied else 0.0
    return {"value": float(turns.value.mean()), "explained_variance": float(explained)}


def _hgpo_figures(turns: TurnTable, settings: Settings) -> Figures:
    """Return the mean length of the longest common history, in states: 0 for a turn in no group."""
    longest = np.zeros(len(turns))
    for k, (rows, label) in enumerate(hgpo.histories(turns, settings["K"] + 1), start=1):
        longest[rows[group_size(label) > 1]] = k
    return {"common_history": float(longest.mean())}


def _reinforce_pp_figures(turns: TurnTable, _settings: Settings) -> Figures:
    """Return the mean divergence of a turn from the reference, in nats, where it is measured."""
    return {"divergence": float(turns.kl.mean())} if turns.kl is not None else {}


def _imitation_figures(turns: TurnTable, settings: Settings) -> Figures:
    return {"imitated_turns": float(imitation.imitation(turns, **settings).mean())}


def _dmpo_figures(turns: TurnTable, settings: Settings) -> Figures:
    return _pair_figures(dmpo.pairs_of(turns), dmpo.scores(turns, **settings))


def _pair_figures(pairs: Pairs, score: Floats) -> Figures:
    accuracy = {"pair_accuracy": pairs.accuracy(score)} if len(pairs) else {}
    return {"pairs": float(len(pairs)), **accuracy}


def _dpo_figures(turns: TurnTable, settings: Settings) -> Figures:
    pairs, score = _compared(turns, settings)
    return {"preference_loss": pairs.loss(settings["beta"] * score), **_pair_figures(pairs, score)}


def _ipo_figures(turns: TurnTable, settings: Settings) -> Figures:
    pairs, score = _compared(turns, settings)
    goal = 1 / (2 * settings["tau"])
    return {"preference_loss": pairs.squared_loss(score, goal), **_pair_figures(pairs, score)}


def _compared(turns: TurnTable, settings: Settings) -> tuple[Pairs, Floats]:
    """Return the pairs of a table, and the log-ratio of everything that is compared."""
    assert turns.kl is not None
    found = compare(turns, **{key: settings[key] for key in CHOICES})
    return found.pairs(settings["margin"]), found.sums(turns.kl)


def _kto_figures(turns: TurnTable, settings: Settings) -> Figures:
    own = kto.labels(turns, **{key: settings[key] for key in CHOICES})
    return {
        "preference_loss": kto.loss(turns, **settings),
        "reference_point": kto.reference_point(turns),
        "desirable_turns": float(own.desirable.mean()),
        "undesirable_turns": float(own.undesirable.mean()),
    }


FIGURES: Final[dict[str, Callable[[TurnTable, Settings], Figures]]] = {
    "dmpo": _dmpo_figures,
    "dpo": _dpo_figures,
    "ecpo": _ecpo_figures,
    "empg": _moments("entropy"),  # in nats
    "gae": _gae_figures,
    "gvpo": _gvpo_figures,
    "hcapo": _hcapo_figures,
    "hgpo": _hgpo_figures,
    "imitation": _imitation_figures,
    "ipo": _ipo_figures,
    "kto": _kto_figures,
    **dict.fromkeys(("oprl", "cast", "igpo", "prime"), _moments("process_reward")),
    "reinforce_pp": _reinforce_pp_figures,
    "salt": _salt_figures,
    "scpo": _scpo_figures,
}
"""Estimators with figures of their own; the others' are those that every method logs."""


def documentation_calls(turns: TurnTable) -> Figures:
    """Return the shares of turns that look up documentation (GVPO, Figure 4), if any call APIs."""
    actions = [
        f"{key}\n{text.partition(scpo.SEPARATOR)[0]}"
        for key, text in zip(turns.action_key, turns.text, strict=True)
    ]
    if not any("apis." in action for action in actions):
        return {}
    return {
        f"credit/{name}_calls": float(np.mean([name in action for action in actions]))
        for name in LOOKUPS
    }


def silent_groups(turns: TurnTable) -> float:
    """Return the share of groups whose rollouts all have the same return: no learning signal."""
    if not len(turns):
        return 0.0
    returns = episode_returns(turns)
    group = encode(turns.group[turns.starts])
    low, high = np.full(group.max() + 1, np.inf), np.full(group.max() + 1, -np.inf)
    np.minimum.at(low, group, returns)
    np.maximum.at(high, group, returns)
    return float((~differs(high, low)).mean())


def shared_states(turns: TurnTable) -> float:
    """Return the share of turns in a state that several rollouts of the group visited."""
    anchor = _anchors(turns)
    visits = encode(anchor, turns.rollout)
    first = np.unique(visits, return_index=True)[1]  # one row for each (state, rollout)
    rollouts_there = np.bincount(anchor[first])
    return float((rollouts_there[anchor] > 1).mean()) if len(turns) else 0.0


def repeated_states(turns: TurnTable) -> float:
    """Return the share of turns in a state that the group visited at least twice."""
    return float((group_size(_anchors(turns)) > 1).mean()) if len(turns) else 0.0


def divergent_anchors(
    turns: TurnTable, *, gamma: float = 0.95, invalid_penalty: float = 0.1
) -> float:
    """Return the share of repeated states whose best action was taken only once.

    A repeated state was visited at least twice by its group. It counts if it has actions taken once
    and actions taken more often, and the highest mean step return is of one taken once.
    Reference: ECPO, Figure 1 and section 1, which plot the share (9% to 28% in training) without a
    formula: this one is read off the example.
    """
    if not len(turns):
        return 0.0
    anchor = _anchors(turns)  # [N]
    key = np.where(turns.valid, turns.action_key, "")
    pair = encode(anchor, turns.valid.astype(np.int64), key)  # [N]; invalid actions are one
    first = np.unique(pair, return_index=True)[1]
    returns = step_returns(turns, gamma, invalid_penalty)
    count = np.bincount(pair)
    mean, owner = label_mean(returns, pair), anchor[first]
    best = np.full((2, anchor.max() + 1), -np.inf)  # of actions taken once, and more often
    np.maximum.at(best, ((count > 1).astype(np.int64), owner), mean)
    both = np.isfinite(best).all(axis=0)
    once, more = np.where(both, best, 0.0)
    lucky = (once > more) & differs(once, more)
    return float(lucky[np.bincount(anchor) > 1].mean()) if (group_size(anchor) > 1).any() else 0.0


def summarise(
    turns: TurnTable,
    advantage: Floats,
    layers: Sequence[Layer] = (),
) -> dict[str, float]:
    """Return the figures to log, under `credit/`: those of every method, then the estimator's.

    `advantage` has a number for each turn or each token. `layers` are the estimator and its bases
    (`registry.layers`). A table without turns gives no figures.
    """
    if not len(turns):
        return {}
    returns = episode_returns(turns)
    return {
        "credit/advantage_min": float(advantage.min()),
        "credit/advantage_max": float(advantage.max()),
        "credit/advantage_range": float(np.ptp(advantage)),
        "credit/advantage_std": float(advantage.std()),
        "credit/silent_groups": silent_groups(turns),
        "credit/shared_states": shared_states(turns),
        "credit/repeated_states": repeated_states(turns),
        "credit/divergent_anchors": divergent_anchors(turns),
        "credit/failed_turns": float(turns.failed.mean()),
        "credit/episode_return": float(returns.mean()),
        **documentation_calls(turns),
        **figures_of(layers, turns),
    }


def figures_of(layers: Sequence[Layer], turns: TurnTable) -> dict[str, float]:
    """Return the figures of an estimator's layers, outermost first, under `credit/`."""
    if not len(turns):
        return {}
    figures: dict[str, float] = {}
    for name, own in reversed(layers):
        figures |= layer_figures(name, turns, own)
    return {f"credit/{key}": value for key, value in figures.items()}


def _anchors(turns: TurnTable) -> Ints:
    return encode(turns.group, turns.state_key)
