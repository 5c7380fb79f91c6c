"""Hypothesis strategies for turn tables."""

import numpy as np
from hypothesis import strategies as st

from harness.credit import TurnTable


@st.composite
def turn_tables(draw, max_groups=3, min_size=1, max_size=4, max_turns=5):
    """Tables with several groups, unequal lengths, shared states, invalid turns, any rewards."""
    rows = []
    rollout = 0
    for group in range(draw(st.integers(1, max_groups))):
        for _ in range(draw(st.integers(min_size, max_size))):
            for turn in range(draw(st.integers(1, max_turns))):
                reward = draw(st.floats(-2, 2, width=16))
                state, action = draw(st.integers(0, 3)), draw(st.integers(0, 2))
                rows.append(
                    (rollout, group, turn, reward, f"s{state}", f"a{action}", draw(st.booleans()))
                )
            rollout += 1
    columns = list(zip(*rows, strict=True))
    names = ("rollout", "group", "turn", "reward", "state_key", "action_key", "valid")
    return TurnTable.from_columns(**dict(zip(names, columns, strict=True)))


def permuted(table, order):
    """The same rollouts in another order, and the row each new row came from."""
    rows = np.concatenate([np.flatnonzero(table.rollout == r) for r in order])
    renumber = {old: new for new, old in enumerate(order)}
    columns = {
        name: getattr(table, name)[rows]
        for name in ("group", "turn", "reward", "state_key", "action_key", "valid")
    }
    columns["rollout"] = [renumber[r] for r in table.rollout[rows]]
    return TurnTable.from_columns(**columns), rows
