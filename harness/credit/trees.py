"""The trees of a table: rollouts that branched from others share their first turns with them.

A node is a turn that some rollout took; siblings' copies of it are the same node. N rows, U nodes,
R rollouts, G groups.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from harness.credit.groups import encode, label_mean
from harness.credit.shared import Outcomes, Shared
from harness.credit.table import TurnTable
from harness.types.arrays import Floats, Ints


class Tree(NamedTuple):
    """The nodes of all groups. The numbers from U on stand for the groups' first states."""

    node: Ints  # [N], 0..U-1
    before: Ints  # [U], the node before, or U + its group's label
    depth: Ints  # [U], its turn
    size: int  # U + G

    @property
    def children(self) -> Ints:
        """Number of nodes after each node and each first state. Shape [U + G]."""
        return np.bincount(self.before, minlength=self.size).astype(np.int64)


def tree_of(turns: TurnTable) -> Tree:
    """Return the nodes of a table; without branches each row is one."""
    original, starts = np.arange(len(turns), dtype=np.int64), turns.starts
    # Parents come before their children: `original` of a parent is final when a child reads it.
    for rollout, parent, length in branches(turns):
        own, above = starts[rollout], starts[parent]
        original[own : own + length] = original[above : above + length]
    rows, node = np.unique(original, return_inverse=True)
    node = node.reshape(-1).astype(np.int64)
    group = encode(turns.group)
    first = turns.turn[rows] == 0
    before = np.where(first, len(rows) + group[rows], node[np.maximum(rows - 1, 0)])
    groups = int(group.max(initial=-1)) + 1
    return Tree(node, before.astype(np.int64), turns.turn[rows], len(rows) + groups)


def branches(turns: TurnTable) -> list[tuple[int, int, int]]:
    """Return each rollout that branched, the one it branched from, and the turns they share."""
    if turns.parent is None or turns.branch_turn is None:
        return []
    parent, length = turns.parent[turns.starts], turns.branch_turn[turns.starts]
    return [(r, int(parent[r]), int(length[r])) for r in np.flatnonzero(parent >= 0).tolist()]


def roots(turns: TurnTable) -> Ints:
    """Return for each row the rollout that its tree grew from, its own without branches. [N]."""
    root = np.arange(len(turns.starts), dtype=np.int64)
    for rollout, parent, _ in branches(turns):
        root[rollout] = root[parent]
    return root[turns.rollout]


def backed_up(tree: Tree, turns: TurnTable, score: Floats) -> Floats:
    """Return nodes' and first states' values, [U + G]: a leaf's score, else its children's mean."""
    value = np.zeros(tree.size)
    last = np.flatnonzero(~turns.goes_on)
    value[tree.node[last]] = score
    for depth in range(int(tree.depth.max(initial=-1)), -1, -1):
        nodes = np.flatnonzero(tree.depth == depth)
        before, place = np.unique(tree.before[nodes], return_inverse=True)
        value[before] = label_mean(value[nodes], place.reshape(-1).astype(np.int64))
    return value


def leaf_outcomes(turns: TurnTable, shared: Shared) -> tuple[Outcomes, Floats]:
    """Return the outcome of each rollout, and the number that each turn's advantage loses. [N].

    A penalty on the `return` is a part of the outcome. One on the `row` is taken off the advantage
    of the invalid turn alone, since a node's value is that of all that follows. `step` is nowhere.
    """
    unpaid = replace(shared, invalid_penalty=0.0, penalty_on="step")
    scores = (unpaid if shared.penalty_on == "row" else shared).outcomes(turns)
    return scores, shared.row_penalty(turns)
