"""The data of the page's figures: ECPO's anchors, SALT's graph and SCPO's similarity matrices.

Orders and baselines may depend on the whole table, so everything is computed on the whole table.
Then each group gets its part, with rows and rollouts numbered from 0 within the group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from harness import credit
from harness.credit.estimators import ecpo, scpo
from harness.credit.estimators.graphs import salt
from harness.credit.groups import encode, group_size
from harness.credit.registry import Base, base_estimator
from harness.credit.table import TurnTable
from harness.reporting.credit_view.compare import Credit
from harness.types.arrays import Ints
from harness.types.hyperparameters import keyword_defaults

Intern = Callable[[str], int]
"""Stores a text once and returns its number."""

MOST_ANCHORS: Final = 12
"""Maximum number of anchors drawn for a group."""


@dataclass(frozen=True, eq=False)
class GroupRows:
    """The rows and rollouts of a group."""

    group: int  # the group's number in the table
    rows: Ints  # indices of its rows, in order [K]
    rollouts: Ints  # indices of its rollouts, in order
    # index within the group of each row of the table [N]; undefined for rows of other
    # groups
    row: Ints
    rollout: Ints  # index within the group of each rollout [R]


def group_rows(turns: TurnTable) -> list[GroupRows]:
    """Return the groups of a table, in the order of their numbers."""
    row = np.zeros(len(turns), dtype=np.int64)
    rollout = np.zeros(len(turns.starts), dtype=np.int64)
    found = []
    for group in np.unique(turns.group).tolist():
        rows = np.flatnonzero(turns.group == group)
        rollouts = np.unique(turns.rollout[rows])
        row[rows] = np.arange(len(rows))
        rollout[rollouts] = np.arange(len(rollouts))
        found.append(GroupRows(group, rows, rollouts, row, rollout))
    return found


class FigureData:
    """Computes the data of the figures for a whole table; a method without a result has none."""

    def __init__(
        self,
        turns: TurnTable,
        results: Sequence[Credit],
        observations: Sequence[str],
        intern: Intern,
    ) -> None:
        """Take the observation before each turn, length N, and a function that stores texts."""
        self._turns, self._observations, self._intern = turns, observations, intern
        ecpo_, salt_, scpo_ = (first_result(results, name) for name in ("ecpo", "salt", "scpo"))
        self._anchors: list[ecpo.Anchor] | None = None
        self._plans: list[scpo.Alignment] | None = None
        if ecpo_:
            self._anchors = ecpo.anchors(turns, **_only(ecpo_.settings, credit.get("ecpo")))
        if scpo_:
            self._plans = scpo.plan(turns, **_only(scpo_.settings, scpo.plan))
        self._graph = _graph(turns, salt_) if salt_ else None

    def of(self, part: GroupRows) -> dict[str, Any]:
        """Return a group's `anchors`, `graph` and `matrices`; None for a figure without data."""
        return {
            "anchors": None if self._anchors is None else self._anchors_of(part, self._anchors),
            "graph": None if self._graph is None else self._graph(part),
            "matrices": None if self._plans is None else [*_matrices(part, self._plans)],
        }

    def _anchors_of(self, part: GroupRows, anchors: Sequence[ecpo.Anchor]) -> dict[str, Any]:
        """Return the anchors whose actions have different returns, divergent ones first."""
        found = [anchor for anchor in anchors if anchor.group == part.group]
        comparable = [anchor for anchor in found if len(anchor.actions) > 1]
        telling = [anchor for anchor in comparable if anchor.reliability > 0 or anchor.divergent]
        telling.sort(key=lambda a: (not a.divergent, -a.reliability, -a.visits, a.depth))
        return {
            "total": len(found),
            "comparable": len(comparable),
            "divergent": sum(anchor.divergent for anchor in comparable),
            "shown": [
                {
                    "state": self._intern(
                        self._observations[int(anchor.actions[0].rows[0])] or anchor.state_key
                    ),
                    "visits": anchor.visits,
                    "mean": four_digits(anchor.mean),
                    "rho": four_digits(anchor.reliability),
                    "divergent": anchor.divergent,
                    "actions": [self._action(part, action) for action in anchor.actions],
                }
                for anchor in telling[:MOST_ANCHORS]
            ],
        }

    def _action(self, part: GroupRows, action: ecpo.Action) -> dict[str, Any]:
        row = int(action.rows[0])
        place = int(part.rollout[self._turns.rollout[row]]), int(self._turns.turn[row])
        return {
            "action": self._intern(action.key),
            "n": len(action.rows),
            "q": four_digits(action.mean),
            "shrunk": four_digits(action.shrunk),
            "advantage": four_digits(action.advantage),
            "at": place,
        }


def first_result(results: Sequence[Credit], estimator: str) -> Credit | None:
    """Return the first computed method with this estimator."""
    found = (c for c in results if c.choice.estimator == estimator and c.advantage is not None)
    return next(found, None)


def _matrices(part: GroupRows, plans: Sequence[scpo.Alignment]) -> Iterator[dict[str, Any]]:
    """Yield a similarity matrix for each failed rollout of the group.

    `score` is the matrix in hundredths, row by row. `credited` has triples in the order of steps:
    position in the reference, step of the failed rollout, credit.
    """
    own = set(part.rollouts.tolist())
    for plan in plans:
        if plan.rollout in own and len(plan.rows) and len(plan.reference_rows):
            assert plan.similarity is not None
            assert plan.credit is not None
            pairs = sorted(plan.credited, key=lambda pair: pair[1])
            yield {
                "failed": int(part.rollout[plan.rollout]),
                "reference": int(part.rollout[plan.reference]),
                "rows": part.row[plan.reference_rows].tolist(),
                "columns": part.row[plan.rows].tolist(),
                "score": np.rint(100 * plan.similarity).astype(int).reshape(-1).tolist(),
                "credited": [[int(u), int(v), four_digits(plan.credit[v])] for u, v in pairs],
            }


def _graph(turns: TurnTable, computed: Credit) -> Callable[[GroupRows], dict[str, Any]]:
    """Return a function that returns a group's part of SALT's trajectory graphs."""
    settings = computed.settings
    how = {name: settings[name] for name in ("match", "threshold")}
    history = int(settings["history"])
    edge = salt.edges(turns, history=history, **how)
    if history > 1:  # an edge of h - 1 is a turn's pair and the h - 1 pairs before it
        after = salt.edges(turns, history=history - 1, **how) + 1
    else:
        after = encode(turns.group, turns.action_key, turns.next_state_key) + 1
    before = np.where(turns.turn == 0, 0, np.roll(after, 1))  # [N]; 0 is the task itself
    base: Base = settings["base"]
    own = keyword_defaults(credit.get("salt"))
    below = base_estimator(base, {k: v for k, v in settings.items() if k not in own})(turns)
    assert computed.advantage is not None
    value, has_several = computed.advantage, group_size(edge) > 1

    def part_of(part: GroupRows) -> dict[str, Any]:
        own, merged = edge[part.rows], has_several[part.rows]
        return {
            "history": history,  # number of turns in a node's history
            "before": before[part.rows].tolist(),
            "after": after[part.rows].tolist(),
            "merged": np.where(merged, own, -1).tolist(),
            "shared": int(merged.sum()),
            "sets": len(np.unique(own[merged])),
            "value": [four_digits(x) for x in value[part.rows]],
            "base": [four_digits(x) for x in below[part.rows]],  # averaged over an edge
        }

    return part_of


def _only(settings: Mapping[str, Any], function: Callable[..., Any]) -> dict[str, Any]:
    known = keyword_defaults(function)
    return {key: value for key, value in settings.items() if key in known}


def four_digits(value: Any) -> float | int:
    """Return a number rounded to four significant digits."""
    rounded = float(f"{float(value):.4g}")
    return int(rounded) if rounded.is_integer() else rounded
