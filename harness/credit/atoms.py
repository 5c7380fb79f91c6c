"""The share of the goal that holds before and after each turn, from the atoms of a table."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from harness.credit.table import TurnTable
from harness.types.arrays import Bools, Floats


def shares(turns: TurnTable) -> tuple[Floats, Floats, Bools]:
    """Return the mean of the atoms before and after each turn, and where the latter are known.

    Unknown ones have the mean of the turn before, 0 if there is none. Shapes [N] each.
    """
    assert turns.next_atoms is not None
    known = np.array([bool(atoms) for atoms in turns.next_atoms], dtype=np.bool_)
    first = turns.turn == 0
    start = np.zeros(len(turns))
    if turns.atoms is not None:
        for row in np.flatnonzero(first).tolist():
            start[row] = _mean(turns.atoms[row])
    before, after = start.tolist(), start.tolist()
    for row, atoms in enumerate(turns.next_atoms.tolist()):
        if not first[row]:
            before[row] = after[row - 1]
        after[row] = _mean(atoms) if atoms else before[row]
    return np.array(before), np.array(after), known


def earned(turns: TurnTable) -> tuple[Floats, Floats]:
    """Return the share before and after each turn of what did not hold when its rollout began.

    Atoms that hold from the start do not count; a share s that was s_0 counts
    (s - s_0) / (1 - s_0). Without such atoms, and before the first known ones, it is 0; unknown
    ones have the share of the turn before. Shapes [N] each.
    """
    assert turns.next_atoms is not None
    before, after = [0.0] * len(turns), [0.0] * len(turns)
    start: Mapping[str, float] = {}
    for row, (atoms, turn) in enumerate(zip(turns.next_atoms, turns.turn, strict=True)):
        if turn == 0:
            start = turns.atoms[row] if turns.atoms is not None else {}
        else:
            before[row] = after[row - 1]
        missing = {name: float(start.get(name, 0.0)) for name in atoms}
        gains = [(float(atoms[name]) - s) / (1.0 - s) for name, s in missing.items() if s < 1.0]
        after[row] = before[row] if not atoms else sum(gains) / max(len(gains), 1)
    return np.array(before), np.array(after)


def _mean(atoms: Mapping[str, float]) -> float:
    return sum(map(float, atoms.values())) / len(atoms) if atoms else 0.0
