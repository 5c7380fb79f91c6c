"""Tables whose rows are response tokens, for estimators that give credit to tokens."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.credit.table import TurnTable
from harness.types.arrays import Floats, Ints
from harness.types.errors import TableError


def token_table(turns: TurnTable, lengths: Ints, **columns: Any) -> TurnTable:
    """Return the table whose rows are the response tokens of the turns, in their order.

    Keys and flags of a turn are repeated for its tokens, `turn` counts tokens within the rollout,
    the turn's reward is on its last token, texts are empty. Optional columns of the turns are not
    carried over: a turn's value is not its tokens'. `lengths` are the tokens of each turn, at least
    1. `columns` are optional ones with a number for each token, such as `value`.
    """
    lengths = np.asarray(lengths)
    if lengths.shape != (len(turns),) or not np.issubdtype(lengths.dtype, np.integer):
        raise TableError(
            f"lengths must be {len(turns)} whole numbers, one for each turn, got {lengths.dtype} "
            f"of shape {lengths.shape}"
        )
    if (lengths < 1).any():
        row = int(np.flatnonzero(lengths < 1)[0])
        raise TableError(f"turn in row {row} has {lengths[row]} tokens, expected at least 1")
    repeated = {
        name: np.repeat(getattr(turns, name), lengths)
        for name in (
            *("rollout", "group", "success", "valid", "failed"),
            *("state_key", "next_state_key", "action_key"),
        )
    }
    taken = sorted({*repeated, "turn", "reward", "ends_turn", "text"} & set(columns))
    if taken:
        raise TableError(f"column {taken[0]!r} follows from the turns, it cannot be given")
    ends = np.cumsum(lengths) - 1
    reward = np.zeros(int(lengths.sum()))
    reward[ends] = turns.reward
    ends_turn = np.isin(np.arange(len(reward)), ends)
    repeated |= _branches(turns, lengths)
    return TurnTable.from_columns(**repeated, reward=reward, ends_turn=ends_turn, **columns)


def _branches(turns: TurnTable, lengths: Ints) -> dict[str, Ints]:
    """Return the columns of branches, whose shared turns are counted in tokens."""
    if turns.parent is None or turns.branch_turn is None:
        return {}
    before = np.cumsum(lengths) - lengths  # [N], tokens of the table before the turn
    start = turns.starts[turns.rollout]
    shared = before[start + turns.branch_turn] - before[start]
    return {"parent": np.repeat(turns.parent, lengths), "branch_turn": np.repeat(shared, lengths)}


def by_turn(advantage: Floats, lengths: Ints) -> list[Floats]:
    """Return the tokens' advantages turn by turn: N arrays of shapes [lengths[i]]."""
    if advantage.shape != (int(np.sum(lengths)),):
        raise TableError(
            f"advantage has shape {advantage.shape}, expected ({int(np.sum(lengths))},)"
        )
    if not len(lengths):
        return []
    return np.split(advantage, np.cumsum(lengths)[:-1])
