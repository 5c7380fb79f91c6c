"""The turns of one state, or episodes of one group, that preferences are between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np

from harness.credit.groups import encode
from harness.credit.preferences import Pairs
from harness.credit.shared import episode_returns, rewards_to_go
from harness.credit.table import TurnTable
from harness.credit.trees import tree_of
from harness.types.arrays import Bools, Floats, Ints
from harness.types.hyperparameters import number, one_of

Level = Literal["turn", "episode"]
"""`turn` compares turns of a group in equal states, `episode` all episodes of a group."""

CHOICES: Final = ("level", "gamma")
"""The hyperparameters of `compare`."""


@dataclass(frozen=True, eq=False)
class Compared:
    """M turns or episodes that are compared where their place is the same. N rows of a table."""

    unit: Ints  # [N] into M: the turn or episode of each row, -1 for none
    place: Ints  # [M], the state in the group, or the group
    value: Floats  # [M], the return from the turn on, or of the episode
    action: Ints  # [M], a label; each episode has its own
    valid: Bools  # [M], true for every episode

    def pairs(self, margin: float) -> Pairs:
        """Return all pairs of one place whose actions differ, and whose values by over `margin`.

        An invalid turn is never the better one.
        """
        return Pairs.by_value(self.place, self.value, self.action, self.valid, margin)

    def sums(self, x: Floats) -> Floats:
        """Return the sum over the rows of each unit. Shape [N] -> [M]."""
        own = self.unit >= 0
        found = np.bincount(self.unit[own], weights=x[own], minlength=len(self.place))
        return found.astype(np.float64)

    def weights(self, turns: TurnTable, slope: Floats) -> Floats:
        """Return weights whose mean log-likelihood has minus the loss's gradient. Shape [N].

        -slope times the number of rows that are trained: a mean over these takes it away again. A
        turn that siblings share is trained once, with the sum of its weights. `slope` is the
        derivative of the loss in the sum of each unit's log-ratios. Shape [M].
        """
        node = tree_of(turns).node
        own = np.where(self.unit >= 0, -slope[self.unit] if len(slope) else 0.0, 0.0)
        total = np.bincount(node, weights=own)
        return np.asarray(total[node] * len(total), dtype=np.float64)


def compare(turns: TurnTable, *, level: Level = "turn", gamma: float = 1.0) -> Compared:
    """Return the turns or episodes that are compared; episodes are not discounted."""
    one_of("level", level, get_args(Level))
    number("gamma", gamma, 0, 1)
    if level == "episode":
        first = turns.starts
        own = np.arange(len(first), dtype=np.int64)
        valid = np.ones(len(first), np.bool_)
        return Compared(turns.rollout, turns.group[first], episode_returns(turns), own, valid)
    rows = np.arange(len(turns), dtype=np.int64)
    # Turns that a sibling shares with its parent are the parent's, and are compared once.
    trained = rows if turns.branch_turn is None else rows[turns.turn >= turns.branch_turn]
    unit = np.full(len(turns), -1, np.int64)
    unit[trained] = np.arange(len(trained))
    return Compared(
        unit,
        encode(turns.group, turns.state_key)[trained],
        rewards_to_go(turns.reward, turns.rollout, gamma)[trained],
        encode(turns.action_key)[trained],
        turns.valid[trained],
    )
