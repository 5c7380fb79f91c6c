"""The tree of a search: states, the actions tried in them, and PUCT's choice among these.

Reference: PUCT as in Silver et al. 2017 (AlphaGo Zero), Methods, "Select": the action with the
largest Q(s, a) + c P(s, a) sqrt(N(s)) / (1 + N(s, a)). A state reached in several ways is one
node, so the tree is a graph without circles; visits and values belong to actions.
Departs from it: an untried action has the mean of the state's value and of the returns of the
tried ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.rollouts.episode import Point
from harness.rollouts.views import Decision


@dataclass(slots=True)
class Edge:
    """An action in a state."""

    decision: Decision
    prior: float  # the policy's probability, in [0, 1]
    visits: int = 0
    total: float = 0.0  # sum of the visits' returns; with the backup "max": visits * best return
    child: Node | None = None  # None until the action was taken

    @property
    def value(self) -> float:
        """Mean return; nan without a visit."""
        return self.total / self.visits if self.visits else math.nan


@dataclass(slots=True)
class Node:
    """A state."""

    number: int  # in the order of discovery, from 0; it seeds the state's proposals
    point: Point | None  # None if the episode is over
    value: float | None = None  # estimated return from here; None until it was estimated
    edges: list[Edge] = field(default_factory=list)  # empty until the policy proposed actions

    @property
    def visits(self) -> int:
        """Number of simulations that went on from here."""
        return sum(edge.visits for edge in self.edges)

    @property
    def top(self) -> float:
        """Largest value of the tried actions, and of the state while some are untried."""
        values = [edge.value for edge in self.edges if edge.visits]
        untried = len(values) < len(self.edges) or not values
        return max([*values, self.value or 0.0] if untried else values)

    def select(self, exploration: float) -> Edge:
        """Return the next simulation's action by PUCT, c = `exploration`; if equal, the first."""
        visits = self.visits
        # The value of an untried action. AlphaGo Zero has 0, which is the worst value here.
        mean = ((self.value or 0.0) + sum(edge.total for edge in self.edges)) / (1 + visits)

        def upper(edge: Edge) -> float:
            known = edge.value if edge.visits else mean
            return known + exploration * edge.prior * math.sqrt(visits) / (1 + edge.visits)

        return max(self.edges, key=upper)

    def best(self) -> Edge | None:
        """Return the most tried action, if equal the one of larger value; None if untried."""
        tried = [edge for edge in self.edges if edge.visits]
        return max(tried, key=lambda edge: (edge.visits, edge.value), default=None)

    def pair(self, min_visits: int) -> tuple[Edge, Edge] | None:
        """Return the most and least valued actions tried `min_visits` times; None if equal."""
        tried = [edge for edge in self.edges if edge.visits >= max(min_visits, 1)]
        if len(tried) < 2:
            return None
        high = max(tried, key=lambda edge: (edge.value, edge.visits))
        low = min(tried, key=lambda edge: (edge.value, -edge.visits))
        return (high, low) if high.value > low.value else None


def back_up(
    path: Sequence[tuple[Node, Edge]], value: float, discount: float, backup: str = "mean"
) -> None:
    """Add the return of a simulation to the actions of its path from the root.

    `value` belongs to the state after the last action; each action discounts it. With the backup
    `"mean"` an action's value is the mean return of its simulations; with `"max"` it is the best
    known return from its state, which is exact if values and environment are.
    """
    for node, edge in reversed(path):
        value *= discount
        edge.visits += 1
        if backup == "max":
            edge.total = edge.visits * value
            value = node.top
        else:
            edge.total += value
