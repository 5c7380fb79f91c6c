"""Checks the arguments of the SOTOPIA environment."""

from __future__ import annotations

from typing import Any, Final

from agentgyms.core.errors import BadOption
from agentgyms.core.tasks import check_split
from agentgyms.data import datasets
from agentgyms.envs.sotopia.dialogue import ORDERS, Rules

SPLITS: Final = {
    "generated": ("train", "valid", "test", "sample"),
    "official": ("all", "hard", "pi", "other", "sample"),
}

_TURN_LIMIT: Final = 200
_BEST_GOAL: Final = 10


def check_source(source: Any, split: str) -> str:
    """Return the source of tasks, which must have the split."""
    if not isinstance(source, str) or source not in SPLITS:
        raise BadOption(f"source must be one of {', '.join(SPLITS)}, got {source!r:.60}")
    check_split(split, SPLITS[source], f"SOTOPIAEnv with source={source!r}")
    return source


def check_path(source: str, data_path: Any) -> str | None:
    """Return the path as a string; a source that reads no files must have none."""
    path = datasets.check_path(data_path)
    if path is not None and source != "official":
        raise BadOption(f"data_path is for source='official': leave it out with source={source!r}")
    return path


def check_rules(order: Any, max_turns: Any, stale_turns: Any, masked_turns_count: Any) -> Rules:
    """Return the rules of dialogues."""
    if not isinstance(order, str) or order not in ORDERS:
        raise BadOption(f"order must be one of {', '.join(ORDERS)}, got {order!r:.60}")
    for name, value in (("max_dialogue_turns", max_turns), ("stale_turns", stale_turns)):
        if type(value) is not int or not 1 <= value <= _TURN_LIMIT:
            raise BadOption(f"{name} must be an integer from 1 to {_TURN_LIMIT}, got {value!r:.60}")
    if type(masked_turns_count) is not bool:
        raise BadOption(f"masked_turns_count must be True or False, got {masked_turns_count!r:.60}")
    return Rules(order, max_turns, stale_turns, masked_turns_count)


def check_threshold(success_threshold: Any) -> float:
    """Return the goal score above which an episode is a success; some score must exceed it."""
    number = isinstance(success_threshold, int | float) and type(success_threshold) is not bool
    if not number or not 0 <= success_threshold < _BEST_GOAL:
        raise BadOption(
            f"success_threshold must be a number from 0 to below {_BEST_GOAL}, "
            f"got {success_threshold!r:.60}"
        )
    return float(success_threshold)


def max_actions(rules: Rules, *, both_seats: bool) -> int:
    """Return the maximum number of the caller's actions in a dialogue."""
    if rules.order == "simultaneous":
        return rules.max_turns * (2 if both_seats else 1)
    return rules.max_turns if both_seats else (rules.max_turns + 1) // 2
