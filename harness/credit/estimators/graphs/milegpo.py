"""MileGPO: GraphGPO's credit, corrected by milestones and traps of the group's graph."""

from __future__ import annotations

import numpy as np

from harness.credit.estimators.graphs.milestones import (
    Candidates,
    candidates,
    local_evidence,
    relative,
)
from harness.credit.estimators.graphs.transitions import Transitions
from harness.credit.registry import estimator
from harness.credit.shared import EPISODE, Shared, with_shared
from harness.credit.table import TurnTable
from harness.types.arrays import Floats
from harness.types.hyperparameters import number, one_of


@estimator("milegpo")
@with_shared(*EPISODE)
def milegpo(
    turns: TurnTable,
    shared: Shared,
    *,
    decay: float = 0.2,
    shaping: float = 0.25,
    trap_weight: float = 0.25,
    eta: float = 0.2,
    coverage: float = 1.1,
    shrink: float = 0.0,
    branch_keeps: bool = False,
    success_reward: float = 10.0,
    step_weight: float = 1.0,
) -> Floats:
    """Episode advantage plus GraphGPO's, corrected for milestones and traps. Shape [N].

    A = w [A_G + eta (A_mix - A_G)] + A_E (Eq. 22). A_G compares r_G = c omega^d(s') over the
    group's turns from the same state, as `graphgpo` does, but a state that does not lead to the
    goal counts 0; A_mix compares r_G + c lambda (delta+ - delta-) (Eq. 20). The deltas are the
    turn's gains in two potentials, losses counting 0 (Eqs. 9 and 10): each potential of a state is
    the largest omega^d S(v) over the states v that it leads to (Eqs. 8 and 19), divided by the
    group's largest S.

    - A milestone is a state of a success but the goal. Its score is max(p(v) - p, 0) + m(v) +
      0.25 C(v) (Eqs. 2 to 5): success rate of the visitors less the group's, share of the successes
      that visit it, and its degree over the largest one of the successes' states.
    - A trap is a state of failures alone, of two of them or revisited, that scores at least 0.1 by
      (failure rate of the visitors less the group's) + 0.25 f(v) L(v) (Eq. 6): share of the
      failures that visit it, times its revisits for each visitor.
    - A milestone's score is multiplied by 1 + b(v) + psi(v) if there is local evidence for it, by
      `shrink` if not (Eqs. 17 and 18). psi is the best of the turns of successes into v: nearer to
      the goal, plus the gain in success rate, less the excess of failures (Eqs. 15 and 16). b is
      the best success rate of a turn into v less that of the other turns from its state (Eqs. 12 to
      14). Evidence is psi > 0, or m(v) from `coverage` on, or, with `branch_keeps`, b > 0.

    Reference: Qian et al. 2026, MileGPO: Milestone Inference with Local Evidence for Graph-Based
    Policy Optimization, arXiv:2608.19803, section 3 and appendix A.5, whose weights of 1, 0.25 and
    discount 1 of the potentials are no settings here. The defaults are those of ALFWorld; WebShop
    has `eta=1`, `coverage=0.5`, `shrink=0.5`, `branch_keeps=True` and `norm="mean"`.
    Departs from it: states are equal when the environment's keys are.

    No code of it was found, and the descriptions at hand name no penalty of invalid actions; that
    the step part knows none is a choice of this code. GraphGPO's trainer takes it off the step
    returns too, as `graphgpo` does.

    Args:
        turns: The turn table; reads `success` and the states.
        shared: The settings of all parts; the penalty is A_E's alone.
        decay: omega, of both distances, in [0, 1].
        shaping: lambda, the weight of the potentials' gains, at least 0.
        trap_weight: The weight of the traps' potential beside the milestones', at least 0.
        eta: The weight of the correction: 0 leaves GraphGPO's term.
        coverage: The share of the successes from which on a milestone needs no other evidence; more
            than 1 for none.
        shrink: The factor of milestones without evidence, in [0, 1].
        branch_keeps: A preferred branch is evidence enough.
        success_reward: c, the return of the goal; the papers train on 10.
        step_weight: w, the weight of the step part.
    """
    number("decay", decay, 0, 1)
    for name, weight in (("shaping", shaping), ("trap_weight", trap_weight)):
        number(name, weight, 0)
    for name, value in (("eta", eta), ("step_weight", step_weight), ("coverage", coverage)):
        number(name, value)
    number("shrink", shrink, 0, 1)
    number("success_reward", success_reward)
    one_of("branch_keeps", branch_keeps, (True, False))
    graph = Transitions.of(turns)
    found = candidates(turns, graph)
    score = _supported(turns, graph, found, coverage, shrink, branch_keeps)
    gains = _gains(graph, score, decay) - trap_weight * _gains(graph, found.trap, decay)
    to_goal = graph.decayed(graph.goal.astype(np.float64), decay)[graph.target]
    plain = shared.standardise(success_reward * to_goal, graph.source)  # A_G
    mixed = shared.standardise(success_reward * (to_goal + shaping * gains), graph.source)  # A_mix
    return shared.episode(turns) + step_weight * (plain + eta * (mixed - plain))


def _supported(
    turns: TurnTable,
    graph: Transitions,
    found: Candidates,
    coverage: float,
    shrink: float,
    branch_keeps: bool,
) -> Floats:
    """Return S_pcc of each state (Eqs. 17 and 18). Shape [S]."""
    branch, progress = local_evidence(turns, graph, found)
    kept = (progress > 0) | (found.coverage >= coverage)
    if branch_keeps:
        kept |= branch > 0
    return found.milestone * np.where(kept, 1.0 + branch + progress, shrink)


def _gains(graph: Transitions, score: Floats, decay: float) -> Floats:
    """Return each turn's gain in the potential of scored states, 0 for a loss. Shape [N]."""
    potential = graph.decayed(relative(score, graph.group), decay)
    return np.maximum(potential[graph.target] - potential[graph.source], 0.0)
