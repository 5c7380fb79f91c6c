"""AT2PO: a turn's advantage is the mean of the normalised outcomes after it, along the tree."""

from __future__ import annotations

from harness.credit.groups import Norm, standardise
from harness.credit.registry import estimator
from harness.credit.returns import PenaltyOn
from harness.credit.table import TurnTable
from harness.credit.trees import backed_up, leaf_outcomes, tree_of
from harness.types.arrays import Floats


@estimator("at2po", preset={"ddof": 0})
def at2po(
    turns: TurnTable,
    *,
    norm: Norm = "std",
    ddof: int = 0,
    eps: float = 1e-6,
    invalid_penalty: float = 0.1,
    penalty_on: PenaltyOn = "step",
) -> Floats:
    """Value of the turn in the group's tree, whose leaves are normalised returns.

    A leaf has (R - mean) / (std + eps) over the rollouts of its group, a turn before it the mean of
    the turns that follow it, and the advantage is that value. Without branches it is GRPO's.
    Reference: Zong et al. 2026, AT2PO: Agentic Turn-based Policy Optimization via Tree Search,
    arXiv:2601.04767, by its released code (`child_mean`, `node_value`, normalised leaves); the
    paper's text was not at hand.
    Departs from it: the code's `child_softmax`, which its script for a 4B model sets, weighs
    children by exp(entropy), and is left out; a shared turn is trained once.

    Args:
        turns: N turns of R rollouts.
        norm: Divide by the standard deviation (`std`) or only centre (`mean`).
        ddof: 0 for the population's standard deviations, as in the code, 1 for the sample's.
        eps: Added to the standard deviations; at least 0.
        invalid_penalty: Of an invalid turn, at least 0.
        penalty_on: What loses it: the rollout's `return`, or the advantage of the turn (`row`).

    Returns:
        Advantage of each turn. Shape [N].

    Raises:
        ConfigError: A hyperparameter is out of its range.
    """
    scores, lost = leaf_outcomes(turns, invalid_penalty, penalty_on)
    leaf = standardise(scores.score, scores.group, norm=norm, ddof=ddof, eps=eps)
    tree = tree_of(turns)
    return backed_up(tree, turns, leaf)[tree.node] - lost
