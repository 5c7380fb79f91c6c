"""GRAFT: turns are credited with the gain in a value that Bellman's equation gives the graph."""

from __future__ import annotations

import math
from typing import Final, Literal, NamedTuple

import numpy as np

from harness.credit.groups import distance, encode, group_size, label_mean
from harness.credit.registry import estimator
from harness.credit.shared import PENALTY, SCALE, Shared, with_shared
from harness.credit.table import TurnTable
from harness.types.arrays import Bools, Floats, Ints
from harness.types.errors import ConfigError
from harness.types.hyperparameters import number, one_of

Sinks = Literal["state", "outcome"]

_CONVERGED: Final = 1e-15
"""Largest change of a value in the last sweep; the paper stops at 1e-8."""


class Graph(NamedTuple):
    """N transitions between S nodes of all groups, and the values of the nodes that are sinks."""

    source: Ints  # [N]
    target: Ints  # [N]
    sink: Bools  # [S]
    reward: Floats  # [S], of sinks; 0 of others


@estimator("graft", preset={"gamma": 0.99})
@with_shared(*SCALE, *PENALTY, gamma=0.99)
def graft(turns: TurnTable, shared: Shared, *, lam: float = 0.95, sinks: Sinks = "state") -> Floats:
    """Gain in value of each turn, relative to the group's turns in its state. Shape [N].

    The group's rollouts are a graph of states. Where a rollout ends is a sink, of value 1 after a
    success and 0 after a failure; a rollout's end is the state that its last turn led to. Any other
    node has V(u), the mean of gamma V(v) over the turns from u to v (Eqs. 5 and 6: means over
    actions and over what each led to are one over turns). A turn from u to v has
    delta = gamma V(v) - V(u) (Eq. 8), and Graph GAE adds (gamma lambda)^k times the mean of delta
    over all turns of the group that are reached in exactly k more, for k up to the rollout's last
    turn (Eqs. 9 and 10). The sum is compared over the group's turns from u: (x - mean) / (std +
    eps) (Eq. 11), and x / (|x| + eps) where there is one alone.
    Reference: Yao et al. 2026, Back to the Definition: Estimating Step-Level Advantages via
    Trajectory Graphs for Agentic Reinforcement Learning (GRAFT), arXiv:2609.28963, section 3. Its
    code was announced and not found.
    Departs from it: states are equal when the environment's keys are, without the embeddings of its
    other mode.

    At the values that solve the equation the mean of delta over the turns from a node is 0. So
    lambda changes nothing but where rollouts go on from a sink of others.

    Open in the paper: what a node is where some rollouts end and others go on, and where they end
    differently. `sinks="state"` takes its words: such a node is a sink, of the mean of its ends.
    `"outcome"` gives each end a node of its own, success or failure, and no state is a sink.

    Args:
        turns: The turn table; reads `success` and the states, and no reward.
        shared: The settings of the comparison; `gamma` is below 1. The penalty is subtracted from
            the advantage of the `row` before it is compared, or from what the rollout's end is
            worth (`return`); `step` is nothing here.
        lam: lambda, in [0, 1]; the paper's are 0.95 for ALFWorld, 0.8 for WebShop.
        sinks: `state` or `outcome`; see above.
    """
    number("lam", lam, 0, 1)
    one_of("sinks", sinks, ("state", "outcome"))
    if shared.gamma >= 1:
        raise ConfigError(f"gamma is {shared.gamma}: graft's values need one below 1, such as 0.99")
    if not len(turns):
        return np.zeros(0)
    graph = trajectory_graph(turns, shared, sinks)
    value = node_values(graph, shared.gamma)
    gain = distance(shared.gamma * value[graph.target], value[graph.source])  # delta, [N]
    advantage = gain + _later(turns, graph, gain, shared.gamma * lam) - shared.row_penalty(turns)
    alone = advantage if shared.norm == "mean" else advantage / (np.abs(advantage) + shared.eps)
    compared = shared.standardise(advantage, graph.source)
    return np.where(group_size(graph.source) > 1, compared, np.where(advantage != 0, alone, 0.0))


def trajectory_graph(turns: TurnTable, shared: Shared, sinks: Sinks) -> Graph:
    """Return the graph of each group's rollouts."""
    ends, n = ~turns.goes_on, len(turns)
    reached = np.where(turns.goes_on, np.roll(turns.state_key, -1), turns.next_state_key)
    worth = np.where(ends, turns.success, 0.0)  # [N], on last turns
    lost, _ = shared.penalised(turns)
    costs = np.bincount(turns.rollout, weights=turns.reward - lost)[turns.rollout]
    worth = np.where(ends, worth - costs, 0.0)
    kind = np.zeros(2 * n, np.int64)  # 0: a state, 1 and 2: the ends of failures and of successes
    key = np.concatenate([turns.state_key, reached])
    if sinks == "outcome":
        kind[n:] = np.where(ends, 1 + turns.success, 0)
        key[n:][ends] = ""
    label = encode(np.concatenate([turns.group, turns.group]), kind, key)
    target, num_nodes = label[n:], int(label.max()) + 1
    sink = np.zeros(num_nodes, np.bool_)
    sink[target[ends]] = True
    reward = np.zeros(num_nodes)
    found = label_mean(worth[ends], target[ends])
    reward[: len(found)] = found
    return Graph(label[:n], target, sink, reward)


def node_values(graph: Graph, gamma: float) -> Floats:
    """Return the value of each node, by sweeps until none changes. Shape [S]."""
    num_nodes = len(graph.sink)
    visits = np.maximum(np.bincount(graph.source, minlength=num_nodes), 1)
    value = np.where(graph.sink, graph.reward, 0.0)
    limit = 50 + math.ceil(math.log(_CONVERGED) / math.log(gamma)) if gamma > 0 else 2
    for _ in range(limit):
        total = np.bincount(graph.source, weights=value[graph.target], minlength=num_nodes)
        swept = np.where(graph.sink, graph.reward, gamma * total / visits)
        change = np.abs(swept - value).max()
        value = swept
        if change <= _CONVERGED:
            break
    return value


def _later(turns: TurnTable, graph: Graph, gain: Floats, decay: float) -> Floats:
    """Return Graph GAE's sum over later turns, which is 0 in graphs whose sinks end all. [N]."""
    later = np.zeros(len(turns))
    passed = np.unique(turns.group[graph.sink[graph.source]])
    left = np.bincount(turns.rollout)[turns.rollout] - 1 - turns.turn  # turns that come after
    for group in passed.tolist() if decay > 0 else ():
        rows = np.flatnonzero(turns.group == group)
        ends = np.concatenate([graph.source[rows], graph.target[rows]])
        node = np.unique(ends, return_inverse=True)[1].reshape(-1)
        source, target = node[: len(rows)], node[len(rows) :]
        later[rows] = _hops(source, target, gain[rows], left[rows], decay)
    return later


def _hops(source: Ints, target: Ints, gain: Floats, left: Ints, decay: float) -> Floats:
    """Return the sum over hops of decay^k times the mean gain that many hops away. Shape [N]."""
    num_nodes = int(max(source.max(), target.max())) + 1
    count = np.bincount(source, minlength=num_nodes).astype(np.float64)
    total = np.bincount(source, weights=gain, minlength=num_nodes)
    leads = np.zeros((num_nodes, num_nodes), np.bool_)
    leads[source, target] = True
    onward = [np.flatnonzero(row) for row in leads]
    away = np.eye(num_nodes, dtype=np.bool_)  # away[v]: the nodes that are k - 1 hops from v
    later = np.zeros(len(source))
    for k in range(1, int(left.max(initial=0)) + 1):
        # Sums of one order: a product of matrices would depend on the BLAS and its threads.
        turns_there = np.einsum("ij,j->i", away, count)
        gains_there = np.einsum("ij,j->i", away, total)
        mean = np.divide(gains_there, turns_there, out=gains_there * 0, where=turns_there > 0)
        later += np.where(left >= k, decay**k * mean[target], 0.0)
        away = np.stack([away[nodes].any(axis=0) for nodes in onward])
    return later
