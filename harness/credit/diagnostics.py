"""Figures about credit, logged at every step: functions of a table and its advantages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from harness.credit.groups import encode, group_size
from harness.credit.method_figures import of_layer
from harness.credit.registry import layers
from harness.credit.returns import episode_returns, step_returns
from harness.credit.table import Floats, Ints, TurnTable


def silent_groups(turns: TurnTable) -> float:
    """Return the share of groups whose rollouts all have the same return: no learning signal."""
    if not len(turns):
        return 0.0
    returns = episode_returns(turns)
    group = encode(turns.group[turns.starts])
    low, high = np.full(group.max() + 1, np.inf), np.full(group.max() + 1, -np.inf)
    np.minimum.at(low, group, returns)
    np.maximum.at(high, group, returns)
    return float((low == high).mean())


def shared_states(turns: TurnTable) -> float:
    """Return the share of turns taken in a state that several rollouts of the group were in."""
    anchor = _anchors(turns)
    visits = encode(anchor, turns.rollout)
    first = np.unique(visits, return_index=True)[1]  # one row for each (state, rollout)
    rollouts_there = np.bincount(anchor[first], minlength=anchor.max(initial=-1) + 1)
    return float((rollouts_there[anchor] > 1).mean()) if len(turns) else 0.0


def repeated_states(turns: TurnTable) -> float:
    """Return the share of turns taken in a state that the group was in at least twice."""
    return float((group_size(_anchors(turns)) > 1).mean()) if len(turns) else 0.0


def divergent_anchors(
    turns: TurnTable, *, gamma: float = 0.95, invalid_penalty: float = 0.1
) -> float:
    """Return the share of repeated states where luck looks better than evidence.

    That is where the mean step return of an action taken once there exceeds that of each action
    taken more often, and there is one of either kind. Of the states a group was in at least twice.
    Reference: ECPO, Figure 1 and section 1, which draw and describe such an anchor and plot their
    share (9% to 28% in training) without a formula: this one is read off the example.

    Args:
        turns: N turns of R rollouts.
        gamma: Discount of the step returns, in [0, 1].
        invalid_penalty: Subtracted from the step return of an invalid turn.
    """
    if not len(turns):
        return 0.0
    anchor = _anchors(turns)  # [N]
    key = np.where(turns.valid, turns.action_key, "")
    pair = encode(anchor, turns.valid.astype(np.int64), key)  # [N]; invalid actions are one
    first = np.unique(pair, return_index=True)[1]
    returns = step_returns(turns, gamma, invalid_penalty)
    count = np.bincount(pair)
    mean, owner = np.bincount(pair, weights=returns) / count, anchor[first]
    best = np.full((2, anchor.max() + 1), -np.inf)  # of actions taken once, and more often
    np.maximum.at(best, ((count > 1).astype(np.int64), owner), mean)
    lucky = np.isfinite(best).all(axis=0) & (best[0] > best[1])
    return float(lucky[np.bincount(anchor) > 1].mean()) if (group_size(anchor) > 1).any() else 0.0


def summarise(
    turns: TurnTable,
    advantage: Floats,
    estimator: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> dict[str, float]:
    """Return the figures to log, under `credit/`: those of every method, then its own.

    Args:
        turns: N turns of R rollouts; none give no figures.
        advantage: Of the turns, or of their tokens.
        estimator: Name of the estimator, for its own figures; None leaves them out.
        settings: Its hyperparameters, those of its base beside them.
    """
    if not len(turns):
        return {}
    own = of_method(estimator, turns, settings) if estimator is not None else {}
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
        **own,
    }


def of_method(
    estimator: str, turns: TurnTable, settings: Mapping[str, Any] | None = None
) -> dict[str, float]:
    """Return what only some estimators have to show: this one's figures, and those of its base.

    Args:
        estimator: Its name.
        turns: N turns of R rollouts; none give no figures.
        settings: Its hyperparameters; the rest are defaults.

    Raises:
        ConfigError: A name or a hyperparameter is unknown.
    """
    if not len(turns):
        return {}
    figures: dict[str, float] = {}
    for name, own in reversed(layers(estimator, settings or {})):
        figures |= of_layer(name, turns, own)
    return {f"credit/{key}": value for key, value in figures.items()}


def _anchors(turns: TurnTable) -> Ints:
    return encode(turns.group, turns.state_key)
