"""How much of an audit bears a figure: how many tasks, how many turns, and how much is enough."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from harness.audit.truth import Truth
from harness.types.arrays import Bools, Ints

CLEAR: Final = 0.15
"""A true advantage is clear from this size on, in units of the reward, if it also is at least two
standard errors."""
EXTREME: Final = 0.05
"""Success within this of 0 or 1 is warned of: nearly all groups end alike."""


@dataclass(frozen=True, slots=True)
class Minimum:
    """The least that a figure is told of."""

    tasks: int = 4  # the coverage of the intervals was measured from 4 tasks on
    # A share of 20 turns has a standard error of up to 0.11, one of fewer says little.
    turns: int = 20


MINIMUM: Final = Minimum()
"""The least that an audit asks for."""


@dataclass(frozen=True, slots=True)
class Count:
    """What bears a figure."""

    tasks: int  # number of tasks with a mixed group and with such turns
    turns: int  # number of these turns

    def enough(self, minimum: Minimum) -> bool:
        """Return whether the figure is told."""
        return self.tasks >= minimum.tasks and self.turns >= minimum.turns


@dataclass(frozen=True, slots=True)
class Evidence:
    """What an audit has to tell methods apart by."""

    success: float  # share of the rollouts that succeeded
    groups: int  # number of groups
    # Number of groups whose rollouts have different returns, as the methods see them: most methods
    # credit nothing in the others.
    mixed: int
    clear: int  # number of turns whose true advantage is clear
    # The tasks and turns that bear each figure, by its name.
    of: Mapping[str, Count] = field(default_factory=dict)
    minimum: Minimum = field(default_factory=Minimum)  # the least evidence of a figure

    def enough(self, title: str) -> bool:
        """Return whether a figure is told."""
        return self.of[title].enough(self.minimum)

    @property
    def warnings(self) -> list[str]:
        """What a reader must know before the figures, in words; each is a line."""
        found = []
        if not EXTREME < self.success < 1 - EXTREME:
            what, mend = ("nearly all", "more") if self.success > 0.5 else ("hardly any", "less")
            found.append(
                f"warning: the policy solves {what} of its rollouts ({self.success:.1%}), and "
                f"groups that end alike have no credit to compare: play with {mend} --noise, "
                "another model, or other tasks"
            )
        lacking = [title for title in self.of if not self.enough(title)]
        if lacking:
            found.append(
                f"warning: too little evidence for {', '.join(lacking)}: a figure needs "
                f"{self.minimum.tasks} tasks with a mixed group and {self.minimum.turns} turns "
                "that bear it"
            )
        return found


def collect(
    truth: Truth, bearing: Mapping[str, Bools], group: Ints | None, minimum: Minimum
) -> Evidence:
    """Return the evidence of a truth of N turns, whose groups are tasks.

    `bearing` has the turns that bear each figure, `group` the group in which each turn's credit was
    computed (None: the task). Shapes [N] each. `minimum` is the least evidence of a figure.
    """
    turns = truth.turns
    first = turns.starts
    returns = np.bincount(turns.rollout, weights=turns.reward)
    own = (turns.group if group is None else group)[first]
    size = float(np.abs(returns).max(initial=0.0))
    high, low = np.full(own.max() + 1, -np.inf), np.full(own.max() + 1, np.inf)
    np.maximum.at(high, own, returns)
    np.minimum.at(low, own, returns)
    mixed = high - low > 1e-9 * size
    with_mixed = np.unique(turns.group[first][mixed[own]])
    counted = np.isin(turns.group, with_mixed)
    counts = {}
    for title, rows in bearing.items():
        there = counted & rows
        counts[title] = Count(len(np.unique(turns.group[there])), int(there.sum()))
    return Evidence(
        float(turns.success[first].mean()),
        len(np.unique(own)),
        int(mixed.sum()),
        int(clear(truth).sum()),
        counts,
        minimum,
    )


def clear(truth: Truth) -> Bools:
    """Return whether each true advantage is clear. Shape [N]."""
    found: Bools = np.abs(truth.advantage) >= np.maximum(CLEAR, 2 * truth.error)
    return found
