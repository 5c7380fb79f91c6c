"""Preferences between rollouts of a group, or turns of a state: losses, and their derivatives.

The score of a rollout or turn is a weighted log-ratio of two policies' probabilities. Losses depend
only on scores, so training needs no graph over a complete group: compute the scores, then the
gradient of each rollout's log-probabilities times its derivative.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from harness.credit.groups import encode, members
from harness.types.arrays import Bools, Floats, Ints

_NOISE: Final = 1e-12
"""Relative difference of two values up to which they are equal."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of a better and a worse one of one group. P pairs among R rollouts, or R turns."""

    winner: Ints  # [P] into R, the better one
    loser: Ints  # [P] into R, the worse one

    @classmethod
    def within(cls, group: Ints, positive: Bools) -> Pairs:
        """Return all pairs of a success and a failure of every group. Shapes [R], [R]."""
        winners, losers = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for rows in members(encode(group)):
            won, lost = rows[positive[rows]], rows[~positive[rows]]
            winners.append(np.repeat(won, len(lost)))
            losers.append(np.tile(lost, len(won)))
        return cls(np.concatenate(winners), np.concatenate(losers))

    @classmethod
    def by_value(
        cls, group: Ints, value: Floats, action: Ints, may_win: Bools, margin: float
    ) -> Pairs:
        """Return the pairs of a group that differ in action, and in value by more than `margin`."""
        winners, losers = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for rows in members(encode(group)):
            own, done = value[rows], action[rows]
            least = margin + _NOISE * max(1.0, float(np.abs(own).max()))
            better = own[:, None] - own[None, :] > least
            better &= (done[:, None] != done[None, :]) & may_win[rows][:, None]
            won, lost = np.nonzero(better)
            winners.append(rows[won])
            losers.append(rows[lost])
        return cls(np.concatenate(winners), np.concatenate(losers))

    def __len__(self) -> int:
        return len(self.winner)

    @cached_property
    def _size(self) -> int:
        return max(1, len(self))

    def loss(self, score: Floats) -> float:
        """Return the mean of -log sigmoid(score of the winner - score of the loser), 0 if no pairs.

        Reference: DPO, arXiv:2305.18290, Eq. 7; OPRL, Eq. 2, where a score is beta * log-ratio.
        """
        return float(np.logaddexp(0.0, -self._margin(score)).sum() / self._size)

    def slope(self, score: Floats) -> Floats:
        """Return the derivative of the loss in every score. Shape [R]."""
        return self._slope(-sigmoid(-self._margin(score)), len(score))

    def squared_loss(self, score: Floats, target: float) -> float:
        """Return the mean of (score of the winner - score of the loser - target)^2, 0 if no pairs.

        Reference: IPO, arXiv:2310.12036, Eq. 17: a score is a log-ratio, the target 1 / (2 tau).
        """
        return float(np.square(self._margin(score) - target).sum() / self._size)

    def squared_slope(self, score: Floats, target: float) -> Floats:
        """Return the derivative of the squared loss in every score. Shape [R]."""
        return self._slope(2 * (self._margin(score) - target), len(score))

    def _slope(self, margin_slope: Floats, size: int) -> Floats:
        """Return derivatives in scores of those in the margins. Shape [P] -> [R]."""
        slope = np.zeros(size)
        np.add.at(slope, self.winner, margin_slope / self._size)
        np.add.at(slope, self.loser, -margin_slope / self._size)
        return slope

    def accuracy(self, score: Floats) -> float:
        """Return the share of pairs whose winner has the greater score; a tie counts half."""
        return float(((np.sign(self._margin(score)) + 1) / 2).sum() / self._size)

    def _margin(self, score: Floats) -> Floats:
        return score[self.winner] - score[self.loser]


def cross_entropy(score: Floats, positive: Bools) -> float:
    """Return the mean cross-entropy of sigmoid(score) and success. Shapes [R], [R].

    Reference: PRIME, arXiv:2502.01456, its reward model's loss; a score is beta * log-ratio.
    """
    return float(np.logaddexp(0.0, np.where(positive, -score, score)).mean()) if len(score) else 0.0


def cross_entropy_slope(score: Floats, positive: Bools) -> Floats:
    """Return the derivative of the cross-entropy in every score. Shapes [R], [R] -> [R]."""
    return (sigmoid(score) - positive) / max(1, len(score))


def sigmoid(x: Floats) -> Floats:
    """Return 1 / (1 + exp(-x)), without overflow. Any shape S -> S."""
    return np.exp(-np.logaddexp(0.0, -x))
