"""The rollouts of a truth in other groups: fresh ones of a given size, or some of them alone."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Final

import numpy as np

from harness.audit.truth import Truth
from harness.credit.table import TurnTable
from harness.types.arrays import Floats, Ints

_STREAM: Final = 3
"""Stream of random numbers, apart from those of the rollouts."""


@dataclass(frozen=True, slots=True, eq=False)
class FreshGroups:
    """Turns in fresh groups."""

    turns: TurnTable  # rollouts of a group stand together
    group: Ints  # [N] fresh group of each turn, in the whole table's order
    _place: Ints
    _several: bool

    @property
    def several(self) -> Ints | None:
        """`group`, or None if each task has one group."""
        return self.group if self._several else None

    def in_order(self, credit: Floats) -> Floats:
        """Return the advantages of `turns` in the order of the whole table. Shape [N]."""
        return credit[self._place]


def regroup(turns: TurnTable, size: int, seed: int = 0) -> FreshGroups:
    """Deal the rollouts of each task into fresh groups of `size`, as equal in size as can be.

    All rollouts of a task are independent draws from one policy, so any part of them is a group
    that might have been played. A task with at most `size` rollouts stays one group. Lost rollouts
    change a group's size by one.
    """
    task = turns.group[turns.starts]  # [R]
    rng = np.random.default_rng([seed, _STREAM, size])
    dealt: list[Ints] = []
    tasks = np.unique(task)
    for one in tasks:
        members = np.flatnonzero(task == one)
        count = max(1, round(len(members) / size))
        dealt += [np.sort(part) for part in np.array_split(rng.permutation(members), count)]
    ordered, rows = take_turns(turns, np.concatenate(dealt))
    # [N] in the order of the dealt rollouts; `place` leads back to the order of `turns`.
    group = np.repeat(np.arange(len(dealt)), [len(part) for part in dealt])[ordered.rollout]
    place = np.argsort(rows)
    return FreshGroups(replace(ordered, group=group), group[place], place, len(dealt) > len(tasks))


def take_turns(turns: TurnTable, rollouts: Ints) -> tuple[TurnTable, Ints]:
    """Return the turns of some rollouts in the given order, and their rows [n] in the whole table.

    Rollouts and groups get new numbers, groups in the order of the old ones.
    """
    rows = np.concatenate([np.flatnonzero(turns.rollout == one) for one in rollouts])
    columns = {field.name: getattr(turns, field.name) for field in fields(turns)}
    extra = columns.pop("extra")
    taken: dict[str, Any] = {
        name: own if own is None else own[rows] for name, own in columns.items()
    }
    counts = np.bincount(turns.rollout)[rollouts]
    taken["rollout"] = np.repeat(np.arange(len(rollouts)), counts)
    taken["group"] = np.unique(taken["group"], return_inverse=True)[1].astype(np.int64)
    taken["extra"] = extra and {name: column[rows] for name, column in extra.items()}
    return TurnTable(**taken), rows


def take(truth: Truth, rollouts: Ints) -> tuple[Truth, Ints]:
    """Return the truth of some rollouts, as `take_turns` does their turns."""
    turns, rows = take_turns(truth.turns, rollouts)
    optional: dict[str, Any] = {
        name: own if (own := getattr(truth, name)) is None else own[rows]
        for name in ("taken", "equal", "known", "sketch")
    }
    return replace(truth, turns=turns, returns=truth.returns[rows], **optional), rows
