"""GraphGPO: turns are compared by how near to success they lead in the group's graph."""

from __future__ import annotations

import numpy as np

from harness.credit.estimators.graphs.transitions import Transitions, group_maximum
from harness.credit.registry import estimator
from harness.credit.shared import EPISODE, Shared, with_shared
from harness.credit.table import TurnTable
from harness.types.arrays import Floats
from harness.types.hyperparameters import number


@estimator("graphgpo")
@with_shared(*EPISODE)
def graphgpo(
    turns: TurnTable,
    shared: Shared,
    *,
    decay: float = 0.1,
    edge_cost: float = 1.0,
    success_reward: float = 10.0,
    step_weight: float = 1.0,
) -> Floats:
    """Episode advantage plus that of what the turn leads to, in the group's graph. Shape [N].

    A = A_E + beta A_G. The states of all rollouts of a group are the nodes of a graph, its turns
    the edges; the last turn of a success leads to the goal. d(s) is the least number of turns from
    s to the goal; a state that does not lead there has the largest such number of the group plus 1.
    A turn from s to s' has the return R_G = r omega^(d(s') + c) (Eq. 4), whatever came of its
    rollout, and A_G = (R_G - mean) / (std + eps) over the group's turns from s. A state with one
    turn gets A_G = 0; a group without success, too, but for penalties. A_E is `grpo`.
    Reference: Cheng et al. 2026, Beyond Trajectory-Level Attribution: Graph-Based Credit Assignment
    for Agentic Reinforcement Learning (GraphGPO), arXiv:2605.26684, section 4, as its readers and a
    public reimplementation describe it; its recipe for verl-agent (recipe/GraphGPO, in the copy
    zzj1111/alfworldauto).
    Departs from it: states are equal when the environment's keys are; every turn costs 1.

    The recipe leaves c out: `edge_cost=0`, set by the preset `verl_agent`. With `norm="std"` that
    changes nothing but the part of eps, and of penalties. The recipe's trainer
    (graphgpo_ray_trainer.py) takes the penalty of an invalid turn off R_G too, before it is
    compared, as `penalty_on="row"` does.

    Args:
        turns: The turn table; reads `success` and the states.
        shared: The settings of both parts. With `penalty_on="row"` R_G loses the penalty, and the
            turn's score in A_E; `step` is nothing here, but for statistics of rows.
        decay: omega of Eq. 4, in [0, 1]; the paper's is 0.1.
        edge_cost: c of Eq. 4, at least 0.
        success_reward: r, the return of the goal itself; the papers train on 10.
        step_weight: beta, the weight of A_G.
    """
    number("step_weight", step_weight)
    graph = Transitions.of(turns)
    value = goal_values(graph, decay, edge_cost, success_reward)[graph.target]  # R_G, [N]
    step = shared.standardise(value - shared.row_penalty(turns), graph.source)
    return shared.episode(turns) + step_weight * step


def goal_values(
    graph: Transitions, decay: float, edge_cost: float, success_reward: float
) -> Floats:
    """Return R_G of a turn that leads to each state, equal ones in groups without success. [S]."""
    number("decay", decay, 0, 1)
    number("edge_cost", edge_cost, 0)
    number("success_reward", success_reward)
    distance = graph.distances()
    found = np.isfinite(distance)
    farthest = group_maximum(np.where(found, distance, 0.0), graph.group)
    steps = np.where(found, distance, farthest + 1)
    values: Floats = success_reward * float(decay) ** (steps + edge_cost)
    return values
