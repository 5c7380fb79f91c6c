"""RTMC: an action's mean return in a state, less the state's smoothed towards the group's."""

from __future__ import annotations

import numpy as np

from harness.credit.groups import distance, encode, group_std, label_mean
from harness.credit.registry import estimator
from harness.credit.shared import PENALTY, Shared, with_shared
from harness.credit.table import TurnTable
from harness.types.arrays import Floats, Ints
from harness.types.hyperparameters import number, one_of


@estimator("rtmc", preset={"gamma": 0.99}, step_returns="reads")
@with_shared(*PENALTY, gamma=0.99)
def rtmc(
    turns: TurnTable,
    shared: Shared,
    *,
    prior_visits: float = 2.0,
    normalise: bool = True,
    least_std: float = 1e-8,
) -> Floats:
    """Mean return after the action in its state, less the state's mean return. Shape [N].

    A = Q(s, a) - V'(s). Q is the mean of R_t over the rollouts of the group that take a in s, each
    with the first of its turns that does. V'(s) = (n V + n_0 mean R) / (n + n_0) (Eq. 11): V is the
    mean over all n such turns of s, whatever the action, and mean R that of the group's returns.
    With `normalise` A is divided by its standard deviation over the turns of the group, the
    population's, and not centred. A group of one rollout gets 0.
    Reference: Wang et al. 2026, RTMC: Step-Level Credit Assignment via Rollout Trees,
    arXiv:2604.11037. The paper's text was not at hand; formulas after a public reimplementation for
    prime-rl, which quotes Eq. 11, and which has these defaults.
    Departs from it: states and actions are the environment's keys, not signatures of a coding
    agent's commands; R_t counts rewards from their turn on, and equals gamma^(T - t) R where only
    last turns have one.

    Args:
        turns: The turn table; reads states and actions.
        shared: The settings of R_t, of which the turn's penalty is a part.
        prior_visits: n_0, at least 0; 0 takes V as it is.
        normalise: Divide by the group's standard deviation.
        least_std: A standard deviation up to this counts as none, and is not divided by.
    """
    number("prior_visits", prior_visits, 0)
    number("least_std", least_std, 0)
    one_of("normalise", normalise, (True, False))
    returned = shared.step_returns(turns)  # R_t, [N]
    if not len(turns):
        return returned
    group = encode(turns.group)
    state = encode(group, turns.state_key)
    action = encode(state, turns.action_key)
    first = np.unique(encode(action, turns.rollout), return_index=True)[1]  # of each rollout
    value, visits = _visited(returned[first], state[first])  # V and n, [S] each
    action_value, _ = _visited(returned[first], action[first])  # Q
    reward, _ = shared.penalised(turns)
    returns = np.bincount(turns.rollout, weights=reward).astype(np.float64)
    prior, rollouts = _visited(returns, group[turns.starts])  # mean R, [G]
    total = visits + prior_visits
    smoothed = (visits * value)[state] + prior_visits * prior[group]
    difference = distance(action_value[action], smoothed / total[state])
    advantage: Floats = np.where(rollouts[group] > 1, difference, 0.0)
    if not normalise:
        return advantage
    scale = group_std(advantage, group, ddof=0)
    scaled: Floats = advantage / np.where(scale > least_std, scale, 1.0)
    return scaled


def _visited(x: Floats, label: Ints) -> tuple[Floats, Floats]:
    """Return mean and number of the values of each label 0, 1... Shapes [K], [K] -> [L] each."""
    return label_mean(x, label), np.bincount(label).astype(np.float64)
