"""Tree-GRPO: advantages within a tree and between the trees of a group."""

from __future__ import annotations

from dataclasses import replace

from harness.credit.groups import group_mean
from harness.credit.registry import estimator
from harness.credit.shared import EPISODE, Shared, with_shared
from harness.credit.table import TurnTable
from harness.credit.trees import roots, tree_of
from harness.types.arrays import Floats
from harness.types.hyperparameters import number


@estimator("tree_grpo")
@with_shared(*EPISODE)
def tree_grpo(turns: TurnTable, shared: Shared, *, tree_weight: float = 1.0) -> Floats:
    """GRPO's advantage in the group plus that in the tree; the mean of shared turns. Shape [N].

    A_i = A_inter + A_intra: `grpo` over all rollouts of the group, and over those of the rollout's
    tree, which are an episode and the siblings that branched from it or from each other. A tree of
    one rollout adds 0, so that a group without branches has GRPO's advantages.
    Reference: Ji et al. 2025, Tree Search for LLM Agent Reinforcement Learning (Tree-GRPO),
    arXiv:2509.21240, and its released code (estimator `tree`, with ddof 1 and eps 1e-6). The
    paper's equations were not at hand.
    Departs from it: the code trains a shared turn once in each rollout that has it, with that
    rollout's advantage; here it is trained once, with their mean. The code's raw score of a tree of
    one rollout is taken for a defect, as GRPO's is.

    Args:
        turns: The turn table; reads the branches.
        shared: The settings of both parts; `statistics="turn"` counts rows of shared turns, too.
        tree_weight: The weight of A_intra.
    """
    number("tree_weight", tree_weight)
    inter = shared.episode(turns)
    intra = shared.episode(replace(turns, group=roots(turns)))
    return group_mean(inter + tree_weight * intra, tree_of(turns).node)
