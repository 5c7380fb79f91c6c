"""Hypothesis strategies for turn tables."""

import numpy as np
from hypothesis import strategies as st

from harness.credit import TurnTable


@st.composite
def turn_tables(draw, max_groups=3, min_size=1, max_size=4, max_turns=5):
    """Tables with several groups, unequal lengths, shared states, invalid turns, any rewards.

    Every optional column is filled, but for `return_bonus`, which scpo fills for itself.
    """
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
    given = dict(zip(names, columns, strict=True))
    more = further_columns(given, np.random.default_rng(draw(st.integers(0, 2**16))))
    return TurnTable.from_columns(**given, **more)


def further_columns(given, rng):
    """The columns that follow from the drawn ones, and random ones of the annotators."""
    rollout, state = given["rollout"], given["state_key"]
    n = len(rollout)
    last = [i + 1 == n or rollout[i + 1] != rollout[i] for i in range(n)]
    reached = ["end" if last[i] else state[i + 1] for i in range(n)]
    return {
        "next_state_key": reached,
        "text": [f"{given['action_key'][i]} || at {reached[i]}" for i in range(n)],
        "failed": rng.random(n) < 0.3,
        "value": rng.normal(size=n),
        "process_reward": rng.normal(size=n),
        "entropy": rng.random(n) * 2,
        "hindsight": rng.uniform(0.05, 1, size=n),
        "kl": rng.normal(size=n) * 0.1,
        "length": rng.integers(1, 9, size=n),
        "state_value": rng.random(n) * 10,
        "teacher_kl": rng.normal(size=n),
        "energy": rng.uniform(0, 2, size=n),
        "atoms": [{} for _ in range(n)],
        "next_atoms": [
            {"clean": bool(rng.random() < 0.5), "worth": float(rng.random())} for _ in range(n)
        ],
    }


def permuted(table, order):
    """The same rollouts in another order, and the row each new row came from."""
    rows = np.concatenate([np.flatnonzero(table.rollout == r) for r in order])
    renumber = {old: new for new, old in enumerate(order)}
    columns = {name: column[rows] for name, column in vars(table).items() if column is not None}
    columns["rollout"] = [renumber[r] for r in table.rollout[rows]]
    return TurnTable.from_columns(**columns), rows
