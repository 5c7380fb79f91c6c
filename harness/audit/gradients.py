"""Policy gradients by given advantages: of a table of probabilities, or of a model's parameters.

A truth with the probabilities of actions has a softmax over the actions of each state; states of
two tasks are different. With a sketch of each turn's gradient, the gradient of the parameters is
the sum of advantage times sketch, and all tasks share the parameters.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

import numpy as np

from harness.audit.intervals import Statistic, weighted
from harness.audit.truth import Truth
from harness.credit.table import TurnTable
from harness.types.arrays import Floats, Ints

_TINY: Final = 1e-12


def cosine(truth: Truth, wanted: Floats, credit: Floats) -> Statistic:
    """Return the cosine between two policy gradients, by the credit and by the wanted advantages.

    The gradient is the sum over turns of the advantage times the gradient of the action's
    log-probability. Credit of zeros has 0; without a known policy it is nan.
    """
    if truth.sketch is not None:
        own, true = (_sums(truth, truth.turns.group, values) for values in (credit, wanted))

        def parameters_cosine(weights: Floats) -> float:
            one, two = (np.add.reduce(weights[:, None] * part, axis=0) for part in (own, true))
            return _cosine(weighted(one, two), weighted(one, one), weighted(two, two))

        return parameters_cosine
    table = _table(truth)
    if table is None:
        return lambda _: math.nan
    products = [table.inner(*pair) for pair in ((credit, wanted), (credit,) * 2, (wanted,) * 2)]

    def table_cosine(weights: Floats) -> float:
        both, of_own, of_true = (weighted(weights, product) for product in products)
        return _cosine(both, of_own, of_true)

    return table_cosine


def _cosine(both: float, of_own: float, of_true: float) -> float:
    if of_true <= _TINY:
        return math.nan
    return both / math.sqrt(of_own * of_true) if of_own > _TINY else 0.0


def squared_norms(truth: Truth, part: Ints, credit: Floats) -> Floats | None:
    """Return each part's squared norm, None if the policy is unknown; a part is of one task."""
    if truth.sketch is not None:
        found: Floats = np.square(_sums(truth, part, credit)).sum(axis=1)
        return found
    if truth.taken is None:
        return None
    return _Table(truth, part).inner(credit, credit)


def states_of(turns: TurnTable, part: Ints) -> Ints:
    """Return the number of each turn's state; states of two parts are different. Shape [N]."""
    keys = np.unique(turns.state_key, return_inverse=True)[1].astype(np.int64)
    return np.unique(part * (keys.max(initial=0) + 1) + keys, return_inverse=True)[1].astype(
        np.int64
    )


def _sums(truth: Truth, part: Ints, credit: Floats) -> Floats:
    """Return the gradient of each part. Shape [parts, D]."""
    assert truth.sketch is not None
    parts = range(int(part.max()) + 1)
    rows = [np.flatnonzero(part == one) for one in parts]
    # A product of matrices would depend on the BLAS; this sum has one order.
    return np.stack([np.einsum("n,nd->d", credit[own], truth.sketch[own]) for own in rows])


class _Table:
    """Gradients of a softmax over the actions of each state of each part."""

    def __init__(self, truth: Truth, part: Ints) -> None:
        assert truth.taken is not None
        assert truth.equal is not None
        self._taken, self._parts = truth.taken, int(part.max()) + 1
        self._state = states_of(truth.turns, part)
        actions = np.unique(truth.turns.action_key, return_inverse=True)[1]
        both = self._state * (actions.max() + 1) + actions
        _, of_action, self._action = np.unique(both, return_index=True, return_inverse=True)
        self._state_of_action = self._state[of_action]
        first = np.unique(self._state, return_index=True)[1]
        self._equal, self._part = truth.equal[first], part[first]

    def inner(self, one: Floats, two: Floats) -> Floats:
        """Return each part's inner product; a turn's gradient is one-hot - probabilities."""
        (a, b, c), (d, e, f) = self._sums(one), self._sums(two)
        by_action = np.bincount(self._state_of_action, weights=a * d)
        rest = b * e * self._equal - b * f - e * c
        found = np.bincount(self._part, weights=by_action + rest, minlength=self._parts)
        return found.astype(np.float64)

    def _sums(self, values: Floats) -> list[Floats]:
        """Return the sums by action, by state, and by state weighted with the probabilities."""
        weighted = values * self._taken
        by = ((self._action, values), (self._state, values), (self._state, weighted))
        return [np.bincount(place, parts).astype(np.float64) for place, parts in by]


@lru_cache(maxsize=2)
def _table(truth: Truth) -> _Table | None:
    return None if truth.taken is None else _Table(truth, truth.turns.group)
