"""Figures about credit, logged at every step: functions of a table and its advantages."""

from __future__ import annotations

import numpy as np

from harness.credit.groups import encode, group_size
from harness.credit.returns import episode_returns
from harness.credit.table import Floats, TurnTable


def silent_groups(turns: TurnTable) -> float:
    """Return the share of groups whose rollouts all have the same return: no learning signal."""
    returns = episode_returns(turns)
    group = encode(turns.group[turns.starts])
    silent = [np.ptp(returns[group == g]) == 0 for g in range(group.max(initial=-1) + 1)]
    return float(np.mean(silent)) if silent else 0.0


def shared_states(turns: TurnTable) -> float:
    """Return the share of turns taken in a state that several rollouts of the group were in."""
    anchor = encode(turns.group, turns.state_key)
    visits = encode(anchor, turns.rollout)
    first = np.unique(visits, return_index=True)[1]  # one row for each (state, rollout)
    rollouts_there = np.bincount(anchor[first], minlength=anchor.max(initial=-1) + 1)
    return float((rollouts_there[anchor] > 1).mean()) if len(turns) else 0.0


def repeated_states(turns: TurnTable) -> float:
    """Return the share of turns taken in a state that the group was in at least twice."""
    sizes = group_size(encode(turns.group, turns.state_key))
    return float((sizes > 1).mean()) if len(turns) else 0.0


def summarise(turns: TurnTable, advantage: Floats) -> dict[str, float]:
    """Return the figures to log, under `credit/`."""
    if not len(turns):
        return {}
    return {
        "credit/advantage_min": float(advantage.min()),
        "credit/advantage_max": float(advantage.max()),
        "credit/advantage_std": float(advantage.std()),
        "credit/silent_groups": silent_groups(turns),
        "credit/shared_states": shared_states(turns),
        "credit/repeated_states": repeated_states(turns),
        "credit/failed_turns": float(turns.failed.mean()),
    }
