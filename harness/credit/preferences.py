"""Preferences between rollouts of a group: losses, and their derivatives in the scores.

The score of a rollout is a weighted log-ratio of two policies' probabilities. Losses depend only on
scores, so training needs no graph over a complete group: compute the scores, then the gradient of
each rollout's log-probabilities times its derivative.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from harness.credit.groups import encode, members
from harness.types.arrays import Bools, Floats, Ints


@dataclass(frozen=True, eq=False)
class Pairs:
    """All pairs of a success and a failure of one group. P pairs among R rollouts.

    Attributes:
        winner: Index of each pair's success. Shape [P].
        loser: Index of its failure. Shape [P].
    """

    winner: Ints
    loser: Ints

    @classmethod
    def within(cls, group: Ints, positive: Bools) -> Pairs:
        """Return the pairs of every group. Shapes [R], [R]."""
        winners, losers = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for rows in members(encode(group)):
            won, lost = rows[positive[rows]], rows[~positive[rows]]
            winners.append(np.repeat(won, len(lost)))
            losers.append(np.tile(lost, len(won)))
        return cls(np.concatenate(winners), np.concatenate(losers))

    def __len__(self) -> int:
        """Return P."""
        return len(self.winner)

    @cached_property
    def _size(self) -> int:
        return max(1, len(self))

    def loss(self, score: Floats) -> float:
        """Return the mean of -log sigmoid(score of the winner - score of the loser), 0 if no pairs.

        Reference: Rafailov et al. 2023, DPO, arXiv:2305.18290, Eq. 7; for whole rollouts OPRL,
        Eq. 2, whose score is beta times the log-ratio.
        """
        return float(np.logaddexp(0.0, -self._margin(score)).sum() / self._size)

    def slope(self, score: Floats) -> Floats:
        """Return the derivative of the loss in every score. Shape [R]."""
        pull = _sigmoid(-self._margin(score)) / self._size
        slope = np.zeros(len(score))
        np.add.at(slope, self.loser, pull)
        np.add.at(slope, self.winner, -pull)
        return slope

    def accuracy(self, score: Floats) -> float:
        """Return the share of pairs whose winner has the greater score; a tie counts half."""
        return float(((np.sign(self._margin(score)) + 1) / 2).sum() / self._size)

    def _margin(self, score: Floats) -> Floats:
        return score[self.winner] - score[self.loser]


def cross_entropy(score: Floats, positive: Bools) -> float:
    """Return the mean cross-entropy of sigmoid(score) and success. Shapes [R], [R].

    Reference: Cui et al. 2025, PRIME, arXiv:2502.01456, the loss of its implicit reward model,
    whose score is beta times the log-ratio.
    """
    return float(np.logaddexp(0.0, np.where(positive, -score, score)).mean()) if len(score) else 0.0


def cross_entropy_slope(score: Floats, positive: Bools) -> Floats:
    """Return the derivative of the cross-entropy in every score. Shapes [R], [R] -> [R]."""
    return (_sigmoid(score) - positive) / max(1, len(score))


def _sigmoid(x: Floats) -> Floats:
    return np.exp(-np.logaddexp(0.0, -x))
