"""The tree of a search: states, the actions tried in them, and PUCT's choice among these.

Reference: PUCT as in Silver et al. 2017 (AlphaGo Zero), Methods, "Select": the action with the
largest Q(s, a) + c P(s, a) sqrt(N(s)) / (1 + N(s, a)). States that several ways lead to are one
node, so the tree is a graph without circles; visits and values belong to actions.
Departs from it: an action that was not tried yet has the mean of the state's own value and of the
returns of those that were.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.rollouts.episode import Point
from harness.rollouts.views import Decision


@dataclass(slots=True)
class Edge:
    """An action in a state.

    Attributes:
        decision: The action, and the answer that it was parsed from.
        prior: The policy's probability of the action, in [0, 1].
        visits: How many simulations took it.
        total: Sum of their returns; of the largest return known by now with the backup "max".
        child: The state that it leads to; None until it was taken.
    """

    decision: Decision
    prior: float
    visits: int = 0
    total: float = 0.0
    child: Node | None = None

    @property
    def value(self) -> float:
        """Mean return; nan without a visit."""
        return self.total / self.visits if self.visits else math.nan


@dataclass(slots=True)
class Node:
    """A state.

    Attributes:
        number: In the order of discovery, from 0.
        point: The episode in this state; None where it is over.
        value: Estimated return from here; None until it was estimated.
        edges: The actions that the policy proposes; empty until it was asked.
    """

    number: int
    point: Point | None
    value: float | None = None
    edges: list[Edge] = field(default_factory=list)

    @property
    def visits(self) -> int:
        """How many simulations went on from here."""
        return sum(edge.visits for edge in self.edges)

    @property
    def top(self) -> float:
        """Largest value of the tried actions, the state's own among them while some are untried."""
        values = [edge.value for edge in self.edges if edge.visits]
        untried = len(values) < len(self.edges) or not values
        return max([*values, self.value or 0.0] if untried else values)

    def select(self, exploration: float) -> Edge:
        """Return the action that the next simulation takes; of equal ones the first.

        Args:
            exploration: PUCT's c.
        """
        visits = self.visits
        mean = ((self.value or 0.0) + sum(edge.total for edge in self.edges)) / (1 + visits)

        def upper(edge: Edge) -> float:
            known = edge.value if edge.visits else mean
            return known + exploration * edge.prior * math.sqrt(visits) / (1 + edge.visits)

        return max(self.edges, key=upper)

    def best(self) -> Edge | None:
        """Return the action that was tried most often, of equal ones the one of larger value.

        Returns:
            None if no action was tried.
        """
        tried = [edge for edge in self.edges if edge.visits]
        return max(tried, key=lambda edge: (edge.visits, edge.value), default=None)

    def pair(self, min_visits: int) -> tuple[Edge, Edge] | None:
        """Return the actions of the largest and the smallest value among those tried often enough.

        Args:
            min_visits: Each was tried at least so often.

        Returns:
            None if fewer than two values differ.
        """
        tried = [edge for edge in self.edges if edge.visits >= max(min_visits, 1)]
        if len(tried) < 2:
            return None
        high = max(tried, key=lambda edge: (edge.value, edge.visits))
        low = min(tried, key=lambda edge: (edge.value, -edge.visits))
        return (high, low) if high.value > low.value else None


def back_up(
    path: Sequence[tuple[Node, Edge]], value: float, discount: float, backup: str = "mean"
) -> None:
    """Add the return of a simulation to the actions that it took.

    Args:
        path: States and actions from the root.
        value: Of the state after the last action.
        discount: Factor for each action, in (0, 1].
        backup: `"mean"`: an action is worth the mean return of its simulations; `"max"`: what the
            best way known from its state is worth, which is exact where values and environment are.
    """
    for node, edge in reversed(path):
        value *= discount
        edge.visits += 1
        if backup == "max":
            edge.total = edge.visits * value
            value = node.top
        else:
            edge.total += value
