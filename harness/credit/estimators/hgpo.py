"""HGPO: step advantages in a hierarchy of groups with longer and longer common history."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from harness.credit.groups import encode, group_size
from harness.credit.registry import estimator
from harness.credit.shared import EPISODE, Shared, with_shared
from harness.credit.table import TurnTable
from harness.types.arrays import Floats, Ints
from harness.types.hyperparameters import integer, number, one_of


@estimator("hgpo", preset={"ddof": 0}, step_returns="reads")
@with_shared(*EPISODE, "gamma", ddof=0)
def hgpo(
    turns: TurnTable,
    shared: Shared,
    *,
    K: int = 2,  # noqa: N803 (the paper's name)
    alpha: float = 1.0,
    drop_zero: bool = False,
    base_group: bool = False,
) -> Floats:
    """Weighted mean of advantages in groups with ever longer common history. Shape [N].

    A = sum_k w_k A_k, with w_k = (k + 1)^alpha / (sum of (k + 1)^alpha + eps) over the groups that
    the turn is in, k = 1..K+1. A_k = (R_t - mean) / (std + eps) over the turns of the group whose
    last k states agree, the present one included; R_t is the discounted return from the turn on,
    less the invalid penalty. A turn is in no group k that has it alone, or that needs more states
    than the rollout has had. There is no episode term, unless `base_group` adds it as k = 0.
    Reference: He et al. 2026, HGPO, arXiv:2602.22817, with the weights of its released code.
    Departs from it: the released code leaves members whose A_k is exactly 0 out of the weighted
    mean, which makes the others' weights larger; here that is `drop_zero=True`.

    Args:
        turns: The turn table; reads the states.
        shared: The settings of all parts. `eps` is added to the sum of the weights, too;
            `statistics` matters to `base_group` alone.
        K: The number of states before the present one that are looked at; at least 0.
        alpha: The exponent of the weights; larger ones prefer long common histories.
        drop_zero: Leave zero advantages out of the weighted mean.
        base_group: Let the episode's advantage, `grpo` with its sample standard deviation, take
            part with weight 1 before normalisation.
    """
    integer("K", K, 0)
    number("alpha", alpha)
    for name, switch in (("drop_zero", drop_zero), ("base_group", base_group)):
        one_of(name, switch, (True, False))
    to_go = shared.step_returns(turns)  # [N]
    total, weights = np.zeros(len(turns)), np.zeros(len(turns))
    if base_group:
        episode = replace(shared, ddof=1).episode(turns)
        counted = (episode != 0) | (not drop_zero)
        total, weights = np.where(counted, episode, 0.0), counted.astype(np.float64)
    for k, (rows, label) in enumerate(histories(turns, K + 1), start=1):
        part = shared.standardise(to_go[rows], label)
        member = (group_size(label) > 1) & ((part != 0) | (not drop_zero))
        weight = (k + 1.0) ** alpha
        total[rows] += weight * part * member
        weights[rows] += weight * member
    return np.divide(total, weights + shared.eps, out=np.zeros(len(turns)), where=weights > 0)


def histories(turns: TurnTable, longest: int) -> list[tuple[Ints, Ints]]:
    """Return for each k = 1..longest the rows with k states, and labels of their last k states.

    Two of the rows have equal labels exactly when they are of one group and the keys of their last
    k states agree, the present state included. Shapes [rows with k states] each.
    """
    state = encode(turns.group, turns.state_key)  # [N]
    label, found = state.copy(), []
    for k in range(1, longest + 1):
        rows = np.flatnonzero(turns.turn >= k - 1).astype(np.int64)
        if k > 1:
            label[rows] = encode(state[rows], label[rows - 1])
        found.append((rows, label[rows]))
    return found
