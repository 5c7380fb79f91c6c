"""KTO: turns that did better or worse than others, without pairs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from harness.credit.estimators.preferences.compared import Level, compare
from harness.credit.groups import differs, encode, group_mean
from harness.credit.preferences import sigmoid
from harness.credit.registry import estimator
from harness.credit.table import TurnTable
from harness.types.arrays import Bools, Floats
from harness.types.hyperparameters import number


class Labels(NamedTuple):
    """Which turns are desirable, and which undesirable; the others say nothing. Shapes [N]."""

    desirable: Bools
    undesirable: Bools


@estimator("kto", needs=("kl", "value"), preset={"gamma": 1.0})
def kto(
    turns: TurnTable,
    *,
    beta: float = 0.1,
    level: Level = "turn",
    gamma: float = 1.0,
    desirable: float = 1.0,
    undesirable: float = 1.0,
) -> Floats:
    """Weight of a turn's log-probability; its mean has minus the KTO loss's gradient. Shape [N].

    L = mean of lambda - v over labelled turns. v = lambda_D sigmoid(beta (x - z)) where a turn is
    desirable and lambda_U sigmoid(beta (z - x)) where it is not, x = log(pi / pi_ref) of the turn
    (`kl`) and z = max(0, mean of `value`), the reference point, which has no gradient: `value` has
    the log-ratios of answers that belong to other prompts. A turn is desirable if it is valid and
    its return is above the mean of its state's turns in the group (`level` "turn"), or that of its
    episode above the mean of the group ("episode"); it is undesirable below that mean. Weights are
    scaled as `dpo`'s.
    Reference: Ethayarajh et al. 2024, KTO: Model Alignment as Prospect Theoretic Optimization,
    arXiv:2402.01306, Eq. 8, and z as there estimated, from mismatched pairs.
    Departs from it: labels come from returns; x and z are those of the policy before the step's
    update, as in `dpo`.

    Args:
        turns: The turn table, with the columns `kl` and `value`.
        beta: The strength of the penalty for leaving pi_ref, at least 0.
        level: `turn` or `episode`.
        gamma: The discount of the returns of turns, in [0, 1].
        desirable: lambda_D, at least 0. The paper keeps lambda_D n_D / (lambda_U n_U) in [1, 4/3].
        undesirable: lambda_U, at least 0.
    """
    number("beta", beta, 0)
    number("desirable", desirable, 0)
    number("undesirable", undesirable, 0)
    assert turns.kl is not None
    own = labels(turns, level=level, gamma=gamma)
    if not len(turns):
        return np.zeros(0)
    gain = beta * (turns.kl - reference_point(turns))
    steep = beta * sigmoid(gain) * sigmoid(-gain)
    slope = undesirable * steep * own.undesirable - desirable * steep * own.desirable
    count = max(1, int((own.desirable | own.undesirable).sum()))
    trained = compare(turns)
    return trained.weights(turns, trained.sums(slope / count))


def labels(turns: TurnTable, *, level: Level = "turn", gamma: float = 1.0) -> Labels:
    """Return the labels of turns; those that a sibling shares with its parent have none there."""
    found = compare(turns, level=level, gamma=gamma)
    mean = group_mean(found.value, encode(found.place))
    side = np.where(differs(found.value, mean), np.sign(found.value - mean), 0.0)
    own = compare(turns).unit >= 0
    row_side = np.where(own, side[found.unit] if len(side) else 0.0, 0.0)
    return Labels((row_side > 0) & turns.valid, row_side < 0)


def reference_point(turns: TurnTable) -> float:
    """Return z: the mean log-ratio of mismatched answers (`value`), or 0 if that is more."""
    turns.require(("value",), "kto.reference_point")
    assert turns.value is not None
    return max(0.0, float(turns.value.mean()))


def loss(
    turns: TurnTable,
    *,
    beta: float = 0.1,
    level: Level = "turn",
    gamma: float = 1.0,
    desirable: float = 1.0,
    undesirable: float = 1.0,
) -> float:
    """Return L, 0 without labels; see `kto`."""
    assert turns.kl is not None
    own = labels(turns, level=level, gamma=gamma)
    gain = beta * (turns.kl - reference_point(turns))
    good = desirable * sigmoid(-gain[own.desirable])
    bad = undesirable * sigmoid(gain[own.undesirable])
    return float((good.sum() + bad.sum()) / max(1, len(good) + len(bad)))
