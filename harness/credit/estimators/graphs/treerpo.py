"""TreeRPO: advantages among the branches of one node, by the mean outcomes after them."""

from __future__ import annotations

import numpy as np

from harness.credit.groups import encode
from harness.credit.registry import estimator
from harness.credit.shared import PENALTY, SCALE, Shared, with_shared
from harness.credit.table import TurnTable
from harness.credit.trees import Tree, backed_up, leaf_outcomes, tree_of
from harness.types.arrays import Floats, Ints


@estimator("treerpo")
@with_shared(*SCALE, *PENALTY)
def treerpo(turns: TurnTable, shared: Shared) -> Floats:
    """Value of the turn's branch, relative to the other branches of the same node. Shape [N].

    A node's value is the mean of its children's, a leaf's the return of its rollout. A step of the
    tree is the run of turns from one place where rollouts part to the next: its advantage is
    (V - mean) / (std + eps) over the steps that begin at the same place, and all its turns share
    it. Without branches the rollouts of a group are its steps, with GRPO's advantages. A penalty is
    lost by the rollout's `return`, or by the advantage of the turn (`row`).
    Reference: Yang et al. 2025, TreeRPO: Tree Relative Policy Optimization, arXiv:2506.05183,
    section 3. Its text was not at hand; the values are after public summaries, which agree.
    Departs from it: there each node has N children after a number of tokens; here nodes are turns,
    and few of them branch. Scaling by GRPO's standard deviation is a choice of this code.
    """
    tree = tree_of(turns)
    scores, lost = leaf_outcomes(turns, shared)
    value = backed_up(tree, turns, scores.score)
    head = _heads(tree)  # [U]
    begins = np.flatnonzero(head == np.arange(len(head)))  # one node for each step
    advantage = np.zeros(len(head))
    place = encode(tree.before[begins])
    advantage[begins] = shared.standardise(value[begins], place)
    return advantage[head][tree.node] - lost


def _heads(tree: Tree) -> Ints:
    """Return the node that each node's step begins with. Shape [U]."""
    nodes = len(tree.before)
    goes_on = (tree.before < nodes) & (tree.children[tree.before] == 1)
    head = np.arange(nodes, dtype=np.int64)
    for depth in range(1, int(tree.depth.max(initial=0)) + 1):
        own = np.flatnonzero((tree.depth == depth) & goes_on)
        head[own] = head[tree.before[own]]
    return head
