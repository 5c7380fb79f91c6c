"""What ECPO, SALT and SCPO see in each group, as the page draws it: anchors, a graph, matrices.

Orders and baselines may span the whole table, so all is computed on it; then each group gets its
part, with rows and rollouts counted from 0 within the group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from harness import credit
from harness.credit import ecpo, salt, scpo
from harness.credit.groups import encode, group_size
from harness.credit.registry import Base, base_estimator, keywords
from harness.credit.table import Bools, Floats, Ints, TurnTable
from harness.credit_view.comparing import Credit

Intern = Callable[[str], int]
"""Keeps a text once and returns its number."""

MOST_ANCHORS: Final = 12
"""Anchors of a group that are drawn."""


@dataclass(frozen=True, eq=False)
class Part:
    """A group's rows.

    Attributes:
        group: The table's group.
        rows: Its rows, in order. Shape [K].
        rollouts: Its rollouts, in order.
        row: Where each row of the table is in the group. Shape [N], meaningless elsewhere.
        rollout: The same for rollouts. Shape [R].
    """

    group: int
    rows: Ints
    rollouts: Ints
    row: Ints
    rollout: Ints


def parts(turns: TurnTable) -> list[Part]:
    """Return the groups of a table, in the order of their numbers."""
    row = np.zeros(len(turns), dtype=np.int64)
    rollout = np.zeros(len(turns.starts), dtype=np.int64)
    found = []
    for group in np.unique(turns.group).tolist():
        rows = np.flatnonzero(turns.group == group)
        rollouts = np.unique(turns.rollout[rows])
        row[rows] = np.arange(len(rows))
        rollout[rollouts] = np.arange(len(rollouts))
        found.append(Part(group, rows, rollouts, row, rollout))
    return found


class Pictures:
    """What the methods saw in a whole table.

    Args:
        turns: The table.
        results: What was computed; a method that is not there has no picture.
        observations: What each turn acted on. Shape [N].
        intern: Keeps texts.
    """

    def __init__(
        self,
        turns: TurnTable,
        results: Sequence[Credit],
        observations: Sequence[str],
        intern: Intern,
    ) -> None:
        """Compute everything but the cut into groups."""
        self._turns, self._observations, self._intern = turns, observations, intern
        ecpo_, salt_, scpo_ = (first_of(results, name) for name in ("ecpo", "salt", "scpo"))
        self._anchors = _anchors(turns, ecpo_.settings) if ecpo_ else None
        self._graph = _graph(turns, salt_) if salt_ else None
        self._plans = _plans(turns, scpo_.settings) if scpo_ else None

    def of(self, part: Part) -> dict[str, Any]:
        """Return a group's `anchors`, `graph` and `matrices`; None where there is no picture."""
        return {
            "anchors": None if self._anchors is None else self._anchors_of(part, self._anchors),
            "graph": None if self._graph is None else self._graph.of(part),
            "matrices": None if self._plans is None else _matrices(part, self._plans),
        }

    def _anchors_of(self, part: Part, anchors: Sequence[ecpo.Anchor]) -> dict[str, Any]:
        """Return the states whose actions gave different returns, the divergent ones first."""
        found = [anchor for anchor in anchors if anchor.group == part.group]
        comparable = [anchor for anchor in found if len(anchor.actions) > 1]
        telling = [anchor for anchor in comparable if anchor.reliability > 0 or anchor.divergent]
        telling.sort(key=lambda a: (not a.divergent, -a.reliability, -a.visits, a.depth))
        return {
            "total": len(found),
            "comparable": len(comparable),
            "divergent": sum(anchor.divergent for anchor in comparable),
            "shown": [self._anchor(part, anchor) for anchor in telling[:MOST_ANCHORS]],
        }

    def _anchor(self, part: Part, anchor: ecpo.Anchor) -> dict[str, Any]:
        seen = self._observations[int(anchor.actions[0].rows[0])]
        return {
            "state": self._intern(seen or anchor.state_key),
            "visits": anchor.visits,
            "mean": short(anchor.mean),
            "rho": short(anchor.reliability),
            "divergent": anchor.divergent,
            "actions": [self._action(part, action) for action in anchor.actions],
        }

    def _action(self, part: Part, action: ecpo.Action) -> dict[str, Any]:
        row = int(action.rows[0])
        place = int(part.rollout[self._turns.rollout[row]]), int(self._turns.turn[row])
        return {
            "action": self._intern(action.key),
            "n": len(action.rows),
            "q": short(action.mean),
            "shrunk": short(action.shrunk),
            "advantage": short(action.advantage),
            "at": place,
        }


def first_of(results: Sequence[Credit], estimator: str) -> Credit | None:
    """Return the first computed method with this estimator."""
    found = (c for c in results if c.choice.estimator == estimator and c.advantage is not None)
    return next(found, None)


def _anchors(turns: TurnTable, settings: Mapping[str, Any]) -> list[ecpo.Anchor]:
    return ecpo.anchors(turns, **_only(settings, credit.get("ecpo")))


def _plans(turns: TurnTable, settings: Mapping[str, Any]) -> list[scpo.Alignment]:
    return scpo.plan(turns, **_only(settings, scpo.plan))


def _matrices(part: Part, plans: Sequence[scpo.Alignment]) -> list[dict[str, Any]]:
    """Return a similarity matrix for each failed rollout of the group.

    `score` is the matrix in hundredths, row after row; `credited` has a position of the reference,
    a step of the failed rollout and the credit, in the order of the steps.
    """
    own = set(part.rollouts.tolist())
    return [
        _matrix(part, plan)
        for plan in plans
        if plan.rollout in own and len(plan.rows) and len(plan.reference_rows)
    ]


def _matrix(part: Part, plan: scpo.Alignment) -> dict[str, Any]:
    assert plan.similarity is not None
    assert plan.credit is not None
    pairs = sorted(plan.credited, key=lambda pair: pair[1])
    return {
        "failed": int(part.rollout[plan.rollout]),
        "reference": int(part.rollout[plan.reference]),
        "rows": part.row[plan.reference_rows].tolist(),
        "columns": part.row[plan.rows].tolist(),
        "score": np.rint(100 * plan.similarity).astype(int).reshape(-1).tolist(),
        "credited": [[int(u), int(v), short(plan.credit[v])] for u, v in pairs],
    }


@dataclass(frozen=True, eq=False)
class _Graph:
    """SALT's trajectory graphs.

    Attributes:
        history: h.
        before: State before each turn; 0 is the task itself. Shape [N].
        after: State after each turn. Shape [N].
        edge: Edge of each turn. Shape [N].
        merged: The edge is that of several turns. Shape [N].
        value: SALT's advantage. Shape [N].
        base: The advantage that it averages. Shape [N].
    """

    history: int
    before: Ints
    after: Ints
    edge: Ints
    merged: Bools
    value: Floats
    base: Floats

    def of(self, part: Part) -> dict[str, Any]:
        edge, merged = self.edge[part.rows], self.merged[part.rows]
        return {
            "history": self.history,
            "before": self.before[part.rows].tolist(),
            "after": self.after[part.rows].tolist(),
            "merged": np.where(merged, edge, -1).tolist(),
            "shared": int(merged.sum()),
            "sets": len(np.unique(edge[merged])),
            "value": [short(x) for x in self.value[part.rows]],
            "base": [short(x) for x in self.base[part.rows]],
        }


def _graph(turns: TurnTable, computed: Credit) -> _Graph:
    settings = computed.settings
    how = {name: settings[name] for name in ("match", "threshold")}
    history = int(settings["history"])
    edge = salt.edges(turns, history=history, **how)
    if history > 1:  # an edge of h - 1 is a turn's pair and the h - 1 pairs before it
        after = salt.edges(turns, history=history - 1, **how) + 1
    else:
        after = encode(turns.group, turns.action_key, turns.next_state_key) + 1
    before = np.where(turns.turn == 0, 0, np.roll(after, 1))
    base: Base = settings["base"]
    own = keywords(credit.get("salt"))
    below = base_estimator(base, {k: v for k, v in settings.items() if k not in own})(turns)
    assert computed.advantage is not None
    return _Graph(history, before, after, edge, group_size(edge) > 1, computed.advantage, below)


def _only(settings: Mapping[str, Any], function: Callable[..., Any]) -> dict[str, Any]:
    known = keywords(function)
    return {key: value for key, value in settings.items() if key in known}


def short(value: Any) -> float | int:
    """Return a number with four significant digits, for the page."""
    rounded = float(f"{float(value):.4g}")
    return int(rounded) if rounded.is_integer() else rounded
