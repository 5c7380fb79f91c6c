"""Bias and noise of credit over fresh groups of the same task, and of its policy gradient.

Turns of a task are equal if state, number of turns taken, action and the policy's other knowledge
are: their true advantage A is one number, and their credit c differs by what else a group happened
to play. c is regressed on A through the origin, with one slope b >= 0 for each method and all
turns, so that methods of different scale compare. The mean square of the credit has three shares,
which add up to 1:

    signal = b^2 E[A^2] / E[c^2]
    bias   = E[(E[c | turn] - b A)^2] / E[c^2]
    noise  = E[Var(c | turn)] / E[c^2]

E[c | turn]^2 is estimated by products of the credit of equal turns of different groups, and squares
of A lose their squared standard errors, so the shares are not biased by the number of groups or
continuations; the bias of a method without bias may be a little below 0.

`snr` is the squared norm of the expected gradient of a group over the variance of that gradient:
1/M sum |g_m|^2 = norm + variance and 1/(M (M - 1)) sum over m != m' of g_m g_m' = norm, for the M
groups of a task, summed over tasks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from harness.audit.gradients import squared_norms
from harness.audit.intervals import Statistic, weighted
from harness.audit.truth import Truth
from harness.types.arrays import Floats, Ints

NAMES: Final = ("snr", "signal", "bias", "noise")
_TINY: Final = 1e-9
"""Rounding noise is below this."""


def statistics(truth: Truth, fresh: Ints) -> dict[str, Callable[[Floats], Statistic]]:
    """Return the function from credit to statistic for each of `NAMES`; `fresh` has groups, [N]."""
    turns = _EqualTurns(truth, fresh)
    return {
        "snr": lambda credit: _snr(truth, fresh, credit),
        "signal": lambda credit: turns.shares(credit, 0),
        "bias": lambda credit: turns.shares(credit, 1),
        "noise": lambda credit: turns.shares(credit, 2),
    }


def _snr(truth: Truth, fresh: Ints, credit: Floats) -> Statistic:
    task = truth.turns.group
    group_norms, task_norms = (squared_norms(truth, part, credit) for part in (fresh, task))
    if group_norms is None or task_norms is None:
        return lambda _: math.nan
    # The squared norm of a task's summed gradient, less those of its groups, is the sum over
    # pairs of different groups of g_m g_m'.
    task_of_group = np.zeros(len(group_norms), np.int64)
    task_of_group[fresh] = task
    count = np.bincount(task_of_group, minlength=len(task_norms)).astype(np.float64)
    squares = np.bincount(task_of_group, weights=group_norms, minlength=len(task_norms))
    several = count > 1
    pairs = np.where(several, count * (count - 1), 1.0)
    signal = np.where(several, (task_norms - squares) / pairs, 0.0)
    total = np.where(several, squares / np.maximum(count, 1), 0.0)

    def statistic(weights: Floats) -> float:
        expected, all_ = weighted(weights, signal), weighted(weights, total)
        noise = all_ - expected
        return expected / noise if noise > max(_TINY, _TINY * all_) else math.nan

    return statistic


class _EqualTurns:
    """The turns in several groups; `_cell` numbers equal turns, `_pair` equal ones of a group."""

    def __init__(self, truth: Truth, fresh: Ints) -> None:
        turns = truth.turns
        known = truth.known if truth.known is not None else np.zeros(len(turns), np.int64)
        names = (turns.state_key, turns.action_key)
        keys = [np.unique(name, return_inverse=True)[1] for name in names]
        cell = _numbered(turns.group, turns.turn, known, *keys)
        # The cells of all different pairs of cell and group, and the number of their rows.
        pairs, counts = np.unique(np.stack((cell, fresh), axis=1), axis=0, return_counts=True)
        groups = _pairs(np.bincount(cell), pairs[:, 0], counts.astype(np.int64))
        self._rows = np.flatnonzero(groups[cell] > 0)
        self._cell = np.unique(cell[self._rows], return_inverse=True)[1].astype(np.int64)
        self._task, self._tasks = turns.group[self._rows], int(turns.group.max()) + 1
        self._pair = _numbered(self._cell, fresh[self._rows])
        self._count = np.bincount(self._cell)
        self._cell_of_pair = np.zeros(int(self._pair.max(initial=-1)) + 1, np.int64)
        self._cell_of_pair[self._pair] = self._cell
        self._pairs = _pairs(self._count, self._cell_of_pair, np.bincount(self._pair))
        self._true = truth.advantage[self._rows]
        # Without the measurement's squared error, which a square of noisy values has in excess.
        self._true_square = self._by_task(self._true**2 - truth.error[self._rows] ** 2)

    def _by_task(self, values: Floats) -> Floats:
        found = np.bincount(self._task, weights=values, minlength=self._tasks)
        return found.astype(np.float64)

    def shares(self, credit: Floats, which: int) -> Statistic:
        """Return the statistic of signal, bias or noise, given its place among them."""
        if not len(self._rows):
            return lambda _: math.nan
        repeated = credit[self._rows]  # [n] of the N turns
        pair_sums = np.bincount(self._pair, weights=repeated)
        # Products of credit from different groups alone: a group's noise would bias its square.
        square = np.bincount(self._cell, weights=repeated) ** 2  # [cells]
        square -= np.bincount(self._cell_of_pair, weights=pair_sums**2)
        expected = self._by_task((square / self._pairs)[self._cell])
        total = self._by_task(repeated**2)  # [P], as all sums that a sample of tasks weights
        both = self._by_task(repeated * self._true)

        def statistic(weights: Floats) -> float:
            all_, truth = weighted(weights, total), weighted(weights, self._true_square)
            if all_ <= _TINY or truth <= _TINY:
                return math.nan
            signal = max(0.0, weighted(weights, both)) ** 2 / truth / all_
            explained = weighted(weights, expected) / all_
            return (signal, explained - signal, 1 - explained)[which]

        return statistic


def _numbered(*columns: Ints) -> Ints:
    """Return the number of each row among the different rows. Shape [N]."""
    rows = np.stack(columns, axis=1)
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _pairs(count: Ints, cell_of_pair: Ints, counts: Ints) -> Floats:
    """Return for each cell how many ordered pairs of rows are of different groups."""
    same = np.bincount(cell_of_pair, weights=counts.astype(np.float64) ** 2)
    found: Floats = count.astype(np.float64) ** 2 - same
    return found
