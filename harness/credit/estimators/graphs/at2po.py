"""AT2PO: a turn's advantage is the mean of the normalised outcomes after it, along the tree."""

from __future__ import annotations

from harness.credit.registry import estimator
from harness.credit.shared import PENALTY, Shared, with_shared
from harness.credit.table import TurnTable
from harness.credit.trees import backed_up, leaf_outcomes, tree_of
from harness.types.arrays import Floats


@estimator("at2po", preset={"ddof": 0})
@with_shared("norm", "eps", *PENALTY, ddof=0)
def at2po(turns: TurnTable, shared: Shared) -> Floats:
    """Value of the turn in the group's tree, whose leaves are normalised returns. Shape [N].

    A leaf has (R - mean) / (std + eps) over the rollouts of its group, a turn before it the mean of
    the turns that follow it, and the advantage is that value. Without branches it is GRPO's. A
    penalty is lost by the rollout's `return`, or by the advantage of the turn (`row`).
    Reference: Zong et al. 2026, AT2PO: Agentic Turn-based Policy Optimization via Tree Search,
    arXiv:2601.04767, by its released code (`child_mean`, `node_value`, normalised leaves); the
    paper's text was not at hand.
    Departs from it: the code's `child_softmax`, which its script for a 4B model sets, weighs
    children by exp(entropy), and is left out; a shared turn is trained once.
    """
    scores, lost = leaf_outcomes(turns, shared)
    leaf = shared.standardise(scores.score, scores.group)
    tree = tree_of(turns)
    return backed_up(tree, turns, leaf)[tree.node] - lost
