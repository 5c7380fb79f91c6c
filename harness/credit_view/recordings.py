"""Recorded rollouts as one table: those of files, of runs' folders, or of the bundled example."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from harness import rollout_files
from harness.credit.table import Floats, TurnTable
from harness.credit_view import example
from harness.errors import ConfigError, TableError
from harness.rollout import Rollout

_TOLD: Final = {"environment": "the environment's", "success": "1 for success"}


@dataclass(frozen=True, eq=False)
class Recorded:
    """Rollouts and their turns.

    Attributes:
        rollouts: Those that can be credited; number i is the table's rollout i.
        turns: Their table.
        source: Where they come from, for people.
        reward: What the table's rewards are, for people.
        left_out: How many rollouts had an error or no turns.
    """

    rollouts: Sequence[Rollout]
    turns: TurnTable
    source: str
    reward: str
    left_out: int = 0

    @property
    def counts(self) -> str:
        """How many rollouts, groups and turns there are, for people."""
        groups = len(np.unique(self.turns.group))
        numbers = {"rollout": len(self.rollouts), "group": groups, "turn": len(self.turns)}
        rollouts, within, turns = (f"{n} {name}{'s' * (n != 1)}" for name, n in numbers.items())
        return f"{rollouts} in {within}, {turns}"


def load(
    paths: Sequence[Path], *, reward: str | None = None, reward_scale: float | None = None
) -> Recorded:
    """Return the rollouts of files and of runs' folders as one table.

    Groups of different files stay different. Of a run's folder the last step that was kept is
    read, and its configuration says what was trained on.

    Args:
        paths: Files that `rollout_files.read` reads, or folders of runs.
        reward: See `TurnTable.from_rollouts`; None takes the run's own, else `environment`.
        reward_scale: Factor on the rewards; None takes the run's own, else 10.

    Raises:
        ConfigError: A folder has no rollouts.
        DataMissing: There is no such file.
        DataCorrupt: A file cannot be read.
        TableError: No rollout can be credited.
    """
    rollouts: list[Rollout] = []
    columns: list[tuple[int, Mapping[str, Floats]]] = []
    trained_on: dict[str, float | str] = {}
    groups = 0
    for path in paths:
        if path.is_dir():
            trained_on |= _trained_on(path)
        kept = rollout_files.read(_last_step(path) if path.is_dir() else path)
        rollouts += [replace(rollout, group=rollout.group + groups) for rollout in kept.rollouts]
        columns.append((sum(len(rollout.turns) for rollout in kept.rollouts), kept.columns))
        groups = max((rollout.group for rollout in rollouts), default=-1) + 1
    return of_rollouts(
        rollouts,
        ", ".join(path.name for path in paths),
        reward=reward or str(trained_on.get("reward", "environment")),
        reward_scale=float(
            trained_on.get("reward_scale", 10.0) if reward_scale is None else reward_scale
        ),
        columns=_joined(columns),
    )


def of_example(*, reward: str | None = None, reward_scale: float | None = None) -> Recorded:
    """Return the bundled example: households played by an expert who errs."""
    return of_rollouts(
        example.rollouts(),
        "ALFWorld, generated tasks, played by an expert who errs",
        reward=reward or "environment",
        reward_scale=10.0 if reward_scale is None else reward_scale,
    )


def of_rollouts(
    rollouts: Sequence[Rollout],
    source: str,
    *,
    reward: str = "environment",
    reward_scale: float = 10.0,
    columns: Mapping[str, Floats] | None = None,
) -> Recorded:
    """Return the table of rollouts, without those that cannot be credited.

    Args:
        rollouts: In any order.
        source: Where they come from, for people.
        reward: What is trained on; see `TurnTable.from_rollouts`.
        reward_scale: Factor on the rewards.
        columns: Optional columns of the table, a number for each turn of all `rollouts`.

    Raises:
        TableError: No rollout can be credited, or a column does not fit.
    """
    usable = [bool(rollout.turns) and not rollout.error for rollout in rollouts]
    kept = [rollout for rollout, fits in zip(rollouts, usable, strict=True) if fits]
    if not kept:
        raise TableError(f"{source} has no rollout with turns and without an error")
    turns = TurnTable.from_rollouts(kept, reward=reward, reward_scale=reward_scale)
    rows = np.repeat(usable, [len(rollout.turns) for rollout in rollouts])
    given = {name: np.asarray(column)[rows] for name, column in (columns or {}).items()}
    told = _TOLD[reward] + ("" if reward_scale == 1 else f", times {reward_scale:g}")
    return Recorded(kept, replace(turns, **given), source, told, len(rollouts) - len(kept))


def _last_step(run: Path) -> Path:
    steps = sorted((run / "rollouts").glob("step-*.jsonl*"))
    if not steps:
        raise ConfigError(
            f"{run} keeps no rollouts: train with --set run.keep_rollouts=10, or give a file"
        )
    return steps[-1]


def _trained_on(run: Path) -> dict[str, float | str]:
    """Return the settings of a run's rewards, as far as its configuration tells."""
    try:
        method = json.loads((run / "config.json").read_text(encoding="utf-8"))["method"]
        return {name: method[name] for name in ("reward", "reward_scale")}
    except (OSError, ValueError, LookupError, TypeError):
        return {}


def _joined(files: Sequence[tuple[int, Mapping[str, Floats]]]) -> dict[str, Floats]:
    """Return the columns that all files with turns have, one after the other."""
    filled = [columns for turns, columns in files if turns]
    shared = set.intersection(*(set(columns) for columns in filled)) if filled else set()
    return {name: np.concatenate([columns[name] for columns in filled]) for name in sorted(shared)}
