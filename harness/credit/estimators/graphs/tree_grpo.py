"""Tree-GRPO: advantages within a tree and between the trees of a group."""

from __future__ import annotations

from dataclasses import replace

from harness.credit.estimators.grpo import Statistics, grpo
from harness.credit.groups import group_mean
from harness.credit.registry import estimator
from harness.credit.returns import PenaltyOn
from harness.credit.table import TurnTable
from harness.credit.trees import roots, tree_of
from harness.types.arrays import Floats
from harness.types.hyperparameters import number


@estimator("tree_grpo")
def tree_grpo(
    turns: TurnTable,
    *,
    tree_weight: float = 1.0,
    scale_by_std: bool = True,
    statistics: Statistics = "rollout",
    ddof: int = 1,
    eps: float = 1e-6,
    invalid_penalty: float = 0.1,
    penalty_on: PenaltyOn = "step",
) -> Floats:
    """GRPO's advantage in the group, plus that in the tree; shared turns have the mean.

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
        turns: N turns of R rollouts.
        tree_weight: Of A_intra.
        scale_by_std: Divide by the standard deviations, not only centre.
        statistics: See `grpo`; `turn` counts the rows of shared turns, too.
        ddof: 1 for sample standard deviations, 0 for the population's.
        eps: Added to the standard deviations; at least 0.
        invalid_penalty: Of an invalid turn, at least 0.
        penalty_on: See `grpo`.

    Returns:
        Advantage of each turn. Shape [N].

    Raises:
        ConfigError: A hyperparameter is out of its range.
    """
    number("tree_weight", tree_weight)
    inter, intra = (
        grpo(
            table,
            scale_by_std=scale_by_std,
            statistics=statistics,
            ddof=ddof,
            eps=eps,
            invalid_penalty=invalid_penalty,
            penalty_on=penalty_on,
        )
        for table in (turns, replace(turns, group=roots(turns)))
    )
    return group_mean(inter + tree_weight * intra, tree_of(turns).node)
