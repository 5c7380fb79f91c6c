"""Milestones and traps: states of a group's graph that tell successes from failures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.credit.estimators.graphs.transitions import Transitions, group_maximum
from harness.credit.groups import encode
from harness.credit.table import TurnTable
from harness.types.arrays import Bools, Floats, Ints

_CONNECTIVITY, _RECURRENCE, _LEAST_TRAP = 0.25, 0.25, 0.1
"""w_c and w_l of MileGPO's Table 5, and the score from which on a state is a trap."""

_NOISE = 1e-12
"""A difference this small is a rounding error."""


@dataclass(frozen=True, slots=True, eq=False)
class Visits:
    """How many rollouts visit each of K items, and how many of them succeed."""

    successes: Ints  # [K], successful rollouts that visit the item
    failures: Ints  # [K], failed ones
    again: Ints  # [K], visits after a rollout's first one

    @classmethod
    def of(cls, item: Ints, rollout: Ints, success: Bools, size: int) -> Visits:
        """Count the visits of rollouts to items. Shapes [V] each, items below `size`."""
        first = np.unique(encode(item, rollout), return_index=True)[1]
        won = np.bincount(item[first], weights=success[first], minlength=size).astype(np.int64)
        distinct = np.bincount(item[first], minlength=size)
        return cls(won, distinct - won, np.bincount(item, minlength=size) - distinct)

    @property
    def rate(self) -> Floats:
        """Share of the visiting rollouts that succeed, 0 without visits. Shape [K]."""
        rate: Floats = self.successes / np.maximum(self.successes + self.failures, 1)
        return rate


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Scores of the states of all groups, 0 for those that are no candidates."""

    milestone: Floats  # [S], S_0^+
    trap: Floats  # [S], S^-
    coverage: Floats  # [S], m: the share of the group's successes that visit the state
    gain: Floats  # [S], p^+(v) - p_q^+: success rate of the visits less the group's


def candidates(turns: TurnTable, graph: Transitions) -> Candidates:
    """Return MileGPO's milestones and traps (Eqs. 2 to 6)."""
    size, last = len(graph.group), ~turns.goes_on
    visits = Visits.of(
        np.concatenate([graph.source, graph.target[last]]),
        np.concatenate([turns.rollout, turns.rollout[last]]),
        np.concatenate([turns.success, turns.success[last]]),
        size,
    )
    first = turns.starts
    won = np.bincount(encode(turns.group)[first], weights=turns.success[first])
    rollouts = np.bincount(encode(turns.group)[first])
    successes, failures = won[graph.group], (rollouts - won)[graph.group]
    gain = visits.rate - successes / rollouts[graph.group]
    coverage = visits.successes / np.maximum(successes, 1)

    source, target = graph.edges()
    degree = np.bincount(source, minlength=size) + np.bincount(target, minlength=size)
    visited = visits.successes > 0
    most = group_maximum(np.where(visited, degree, 0.0), graph.group)
    central = np.where(visited, degree / np.maximum(most, 1), 0.0)
    milestone = np.maximum(gain, 0.0) + coverage + _CONNECTIVITY * central

    visitors = np.maximum(visits.successes + visits.failures, 1)
    frequent = visits.failures / np.maximum(failures, 1)
    trap = np.maximum(-gain, 0.0) + _RECURRENCE * frequent * visits.again / visitors
    recurs = (visits.failures > 1) | (visits.again > 0)
    return Candidates(
        milestone=np.where(visited & ~graph.goal, milestone, 0.0),
        trap=np.where(~visited & recurs & (trap >= _LEAST_TRAP - _NOISE), trap, 0.0),
        coverage=coverage,
        gain=gain,
    )


def local_evidence(
    turns: TurnTable, graph: Transitions, found: Candidates
) -> tuple[Floats, Floats]:
    """Return b and psi of each state (Eqs. 11 to 16): preferred branch, and progress. [S] each."""
    edge = encode(graph.source, graph.target)  # [N]
    row = np.unique(edge, return_index=True)[1]  # a turn of each of E edges
    source, target = graph.source[row], graph.target[row]
    rate = Visits.of(edge, turns.rollout, turns.success, len(row)).rate
    branches = np.bincount(source, minlength=len(graph.group))[source]
    total = np.bincount(source, weights=rate, minlength=len(graph.group))[source]
    siblings = branches > 1
    others = np.where(siblings, (total - rate) / np.maximum(branches - 1, 1), rate)
    margin = rate - others
    margin = np.where(np.abs(margin) > _NOISE, margin, 0.0)
    branch = _best(relative(margin, graph.group[source]), target, len(graph.group))

    distance = graph.distances()
    known = np.isfinite(distance[source]) & np.isfinite(distance[target])
    nearer = np.zeros(len(row))
    nearer[known] = distance[source[known]] - distance[target[known]]
    # The failure rate is 1 - the success rate, for an edge as for its siblings.
    excess = np.where(siblings, np.maximum(-margin, 0.0), np.maximum(-found.gain[target], 0.0))
    progress = nearer + found.gain[target] - excess
    best = _best(np.where(rate > 0, progress, 0.0), target, len(graph.group))
    return branch, relative(best, graph.group)


def _best(x: Floats, state: Ints, size: int) -> Floats:
    """Return the largest positive value of each state's edges, 0 if there is none. Shape [S]."""
    best = np.zeros(size)
    np.maximum.at(best, state, np.where(x > _NOISE, x, 0.0))
    return best


def relative(x: Floats, group: Ints) -> Floats:
    """Return values over the largest absolute one of their group, 0 if all are 0. Shape [K]."""
    largest = group_maximum(np.abs(x), group)
    return np.divide(x, largest, out=np.zeros_like(x), where=largest > 0)
