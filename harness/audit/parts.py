"""The figures of parts of an audit: by size of the groups, by success rate and by length."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

import numpy as np

from harness.audit.agreement import Agreement, agree
from harness.audit.fresh_groups import regroup, take
from harness.audit.truth import Truth
from harness.credit.table import TurnTable
from harness.types.arrays import Floats, Ints
from harness.types.errors import ConfigError

BY: Final = ("success", "length")
"""The keys of a division: success rate of the task, or number of turns of the rollout."""

_THIRDS: Final = 3

Estimators = Callable[[TurnTable], Mapping[str, Floats]]
"""Turns in groups -> the advantages of each method. Shape [N] each."""


def by_group_size(
    truth: Truth,
    sizes: Sequence[int],
    estimators: Estimators,
    measured: Collection[str] = (),
) -> dict[str, Agreement]:
    """Return the figures of methods with fresh groups of each size, on the same turns and truth.

    The truth's groups are the tasks. Half of the continuations credit the methods in `measured`.
    """
    found = {}
    for size in sizes:
        groups = regroup(truth.credited(), size)
        credit = estimators(groups.turns)
        advantages = {name: groups.in_order(own) for name, own in credit.items()}
        found[str(size)] = agree(truth, advantages, measured=measured, fresh=groups.several)
    return found


def check_sizes(sizes: Sequence[int], rollouts: int) -> None:
    """Raise `ConfigError` if a size is below 2 or does not divide the rollouts of a task."""
    for size in sizes:
        if size < 2 or rollouts % size:
            raise ConfigError(
                f"--group-sizes must divide the {rollouts} rollouts of a task, and be 2 or more, "
                f"got {size}: give others, or play with other --group-size and --repeats"
            )


def by_thirds(
    truth: Truth,
    advantages: Mapping[str, Floats],
    by: str,
    measured: Collection[str] = (),
) -> dict[str, Agreement]:
    """Return the figures of the rollouts in each third of the range; empty thirds are left out.

    The range is `success`, of the task's rollouts from 0 to 1, or `length`, up to the longest
    rollout. Advantages have the shape [N]. Half of the continuations credit the methods in
    `measured`.
    """
    values, names = (_success if by == "success" else _lengths)(truth)
    third = np.clip(np.ceil(values * _THIRDS - 1e-9) - 1, 0, _THIRDS - 1).astype(np.int64)
    found = {}
    for number in range(_THIRDS):
        rollouts = np.flatnonzero(third == number)
        if len(rollouts):
            part, rows = take(truth, rollouts)
            own = {name: credit[rows] for name, credit in advantages.items()}
            found[names[number]] = agree(part, own, measured=measured)
    return found


def _success(truth: Truth) -> tuple[Floats, list[str]]:
    """Return the success rate of each rollout's task, and the names of the thirds."""
    first = truth.turns.starts
    task = truth.turns.group[first]
    rate = np.bincount(task, weights=truth.turns.success[first]) / np.maximum(np.bincount(task), 1)
    return rate[task], ["0-33 %", "33-67 %", "67-100 %"]


def _lengths(truth: Truth) -> tuple[Floats, list[str]]:
    """Return the length of each rollout as a share of the longest, and the names of the thirds."""
    length: Ints = np.bincount(truth.turns.rollout)
    longest = int(length.max())
    ends = [math.floor(longest * n / _THIRDS) for n in range(_THIRDS + 1)]
    return length / longest, [f"{ends[n] + 1}-{ends[n + 1]} turns" for n in range(_THIRDS)]
