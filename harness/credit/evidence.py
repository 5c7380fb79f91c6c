"""Statistics of the actions that a group took in each state (ECPO)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from harness.credit.groups import differs, distance, encode, label_mean
from harness.credit.table import TurnTable
from harness.types.arrays import Bools, Floats, Ints
from harness.types.hyperparameters import integer, number, one_of

Saturation = Literal["ratio", "exp", "none"]
Sigma = Literal["unweighted", "weighted", "raw"]
Between = Literal["raw", "shrunk"]

INVALID: Final = "<invalid>"
"""The canonical action of all invalid ones; no valid action is ever counted with them."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """How ECPO weighs evidence: the hyperparameters of `ecpo` of the same names."""

    kappa: float
    tau: float
    saturation: Saturation
    sigma: Sigma
    sigma_ddof: int
    between: Between
    min_depth: int
    floor: float
    shrink: bool
    gate: bool
    eps: float

    def __post_init__(self) -> None:
        number("kappa", self.kappa, 0)
        number("tau", self.tau, 1e-9)
        one_of("saturation", self.saturation, ("ratio", "exp", "none"))
        one_of("sigma", self.sigma, ("unweighted", "weighted", "raw"))
        one_of("sigma_ddof", self.sigma_ddof, (0, 1))
        one_of("between", self.between, ("raw", "shrunk"))
        integer("min_depth", self.min_depth, 0)
        number("floor", self.floor, 0, 1)
        one_of("shrink", self.shrink, (True, False))
        one_of("gate", self.gate, (True, False))
        number("eps", self.eps, 0)

    @classmethod
    def of(cls, hyperparameters: Mapping[str, Any]) -> Calibration:
        """Return the calibration among `ecpo`'s hyperparameters."""
        return cls(**{name: hyperparameters[name] for name in cls.__dataclass_fields__})


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """S states of groups, M pairs of a state and a canonical action taken there, N turns."""

    anchor: Ints  # [N], the turn's state, 0..S-1
    pair: Ints  # [N], its state and action, 0..M-1
    owner: Ints  # [M], the pair's state
    depth: Ints  # [S], turn of the first visit, from 0
    visits: Ints  # [S], N of the paper
    mean: Floats  # [S], mu: the mean step return over the visits
    between: Floats  # [S], B: the variance between actions
    within: Floats  # [S], W: the variance within actions
    saturation: Floats  # [S], growth of trust with N, in [0, 1]
    sigma: Floats  # [S], the divisor of advantages
    strict_valid: Bools  # [S], the state may give credit
    reliability: Floats  # [S], rho; 0 where it may not
    action_mean: Floats  # [M], q: the mean step return of the action
    estimate: Floats  # [M], q~; q without shrinkage
    advantage: Floats  # [M], A_act


def evidence(turns: TurnTable, returns: Floats, by: Calibration) -> Evidence:
    """Return the evidence for each state of each group by step returns, [N]; see `ecpo`."""
    anchor = encode(turns.group, turns.state_key)
    key = np.where(turns.valid, turns.action_key, INVALID)
    pair = encode(anchor, turns.valid.astype(np.int64), key)
    owner = np.zeros(pair.max(initial=-1) + 1, dtype=np.int64)
    owner[pair] = anchor

    visits, count = np.bincount(anchor), np.bincount(pair)
    mean = label_mean(returns, anchor)
    action_mean = label_mean(returns, pair)
    estimate = (count * action_mean + by.kappa * mean[owner]) / (count + by.kappa)
    estimate = estimate if by.shrink else action_mean

    compared = action_mean if by.between == "raw" else estimate
    between = np.bincount(owner, weights=count * (compared - mean[owner]) ** 2) / visits
    within = np.bincount(anchor, weights=(returns - action_mean[pair]) ** 2) / visits
    saturation = _saturation(visits, by)
    gate = saturation * _quotient(between, between + within + by.eps)

    depth = np.full(len(visits), np.iinfo(np.int64).max)
    np.minimum.at(depth, anchor, turns.turn)
    strict = _comparable(returns, anchor, mean, owner) & (depth >= by.min_depth)
    trusted = np.maximum(gate, by.floor) if by.gate else np.ones(len(visits))

    sigma = _sigma(returns, anchor, estimate, owner, count, by)
    centred = distance(estimate, mean[owner])
    return Evidence(
        anchor=anchor,
        pair=pair,
        owner=owner,
        depth=depth,
        visits=visits,
        mean=mean,
        between=between,
        within=within,
        saturation=saturation,
        sigma=sigma,
        strict_valid=strict,
        reliability=np.where(strict, trusted, 0.0),
        action_mean=action_mean,
        estimate=estimate,
        advantage=_quotient(centred, sigma[owner] + by.eps),
    )


def _comparable(returns: Floats, anchor: Ints, mean: Floats, owner: Ints) -> Bools:
    """Tell which states have two visits, two actions, and returns that differ. [S]."""
    varied = np.bincount(anchor, weights=differs(returns, mean[anchor])) > 0
    repeated: Bools = (np.bincount(anchor) > 1) & (np.bincount(owner) > 1)
    return repeated & varied


def _saturation(visits: Ints, by: Calibration) -> Floats:
    if by.saturation == "none":
        return np.ones(len(visits))
    if by.saturation == "exp":
        return -np.expm1(-visits / by.tau)
    return visits / (visits + by.tau)


def _sigma(
    returns: Floats, anchor: Ints, estimate: Floats, owner: Ints, count: Ints, by: Calibration
) -> Floats:
    """Return the standard deviation that each state's action advantages are divided by. [S]."""
    x, label = (returns, anchor) if by.sigma == "raw" else (estimate, owner)
    weight = count.astype(np.float64) if by.sigma == "weighted" else np.ones(len(x))
    total = np.bincount(label, weights=weight)
    mean = np.bincount(label, weights=weight * x) / total
    squares = np.bincount(label, weights=weight * (x - mean[label]) ** 2)
    return np.sqrt(_quotient(squares, total - by.sigma_ddof))


def _quotient(above: NDArray[Any], below: NDArray[Any]) -> Floats:
    quotient = np.zeros(above.shape)
    np.divide(above, below, out=quotient, where=below > 0)
    return quotient
