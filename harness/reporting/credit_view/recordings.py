"""Recorded rollouts of files, runs' folders or the bundled example as one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from harness.credit.table import TurnTable
from harness.reporting.credit_view import example
from harness.rollouts import rollout_files
from harness.types.arrays import Floats
from harness.types.errors import ConfigError, TableError
from harness.types.json_files import read_object
from harness.types.rollout import Rollout

_REWARD_TEXTS: Final = {"environment": "the environment's", "success": "1 for success"}


@dataclass(frozen=True, eq=False)
class RecordedRollouts:
    """Rollouts and their turns."""

    rollouts: Sequence[Rollout]  # the usable rollouts; number i is the table's rollout i
    turns: TurnTable
    source: str  # names of files or runs
    reward: str  # the kind of the table's rewards, as text
    left_out: int = 0

    @property
    def counts(self) -> str:
        """Numbers of rollouts, groups and turns, as text."""
        groups = len(np.unique(self.turns.group))
        numbers = {"rollout": len(self.rollouts), "group": groups, "turn": len(self.turns)}
        rollouts, within, turns = (f"{n} {name}{'s' * (n != 1)}" for name, n in numbers.items())
        return f"{rollouts} in {within}, {turns}"


def load(
    paths: Sequence[Path], *, reward: str | None = None, reward_scale: float | None = None
) -> RecordedRollouts:
    """Return the rollouts of files and of runs' folders as one table.

    Groups of different files stay different. From a run's folder the last kept step is read, and
    its configuration gives the defaults of `reward` and `reward_scale`.

    Args:
        paths: Files that `rollout_files.read` reads, or folders of runs.
        reward: See `TurnTable.from_rollouts`; None takes the run's, or else `environment`.
        reward_scale: Factor on the rewards; None takes the run's, or else 10.

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
    return from_rollouts(
        rollouts,
        ", ".join(path.name for path in paths),
        reward=reward or _own_reward(trained_on),
        reward_scale=float(
            trained_on.get("reward_scale", 10.0) if reward_scale is None else reward_scale
        ),
        columns=_joined(columns),
    )


def load_example(
    *, reward: str | None = None, reward_scale: float | None = None
) -> RecordedRollouts:
    """Return the bundled example: ALFWorld tasks played by a noisy expert."""
    return from_rollouts(
        example.rollouts(),
        "ALFWorld, generated tasks, played by an expert who errs",
        reward=reward or "environment",
        reward_scale=10.0 if reward_scale is None else reward_scale,
    )


def from_rollouts(
    rollouts: Sequence[Rollout],
    source: str,
    *,
    reward: str = "environment",
    reward_scale: float = 10.0,
    columns: Mapping[str, Floats] | None = None,
) -> RecordedRollouts:
    """Return rollouts and their table, without those that have an error or no turns.

    Optional `columns` have a number for each turn of all `rollouts`. Raises `TableError` if
    no rollout can be credited, or a column does not fit.
    """
    usable = [bool(rollout.turns) and not rollout.error for rollout in rollouts]
    kept = [rollout for rollout, fits in zip(rollouts, usable, strict=True) if fits]
    if not kept:
        raise TableError(f"{source} has no rollout with turns and without an error")
    turns = TurnTable.from_rollouts(kept, reward=reward, reward_scale=reward_scale)
    rows = np.repeat(usable, [len(rollout.turns) for rollout in rollouts])
    given = {name: np.asarray(column)[rows] for name, column in (columns or {}).items()}
    rewards = _REWARD_TEXTS.get(reward, reward) + (
        "" if reward_scale == 1 else f", times {reward_scale:g}"
    )
    return RecordedRollouts(
        kept, replace(turns, **given), source, rewards, len(rollouts) - len(kept)
    )


def _last_step(run: Path) -> Path:
    steps = sorted((run / "rollouts").glob("step-*.jsonl*"))
    if not steps:
        raise ConfigError(
            f"{run} has no rollouts yet: those of its last step are kept at its end, others with "
            "--set run.keep_rollouts=10; or give a file"
        )
    return steps[-1]


def _own_reward(trained_on: Mapping[str, float | str]) -> str:
    """Return the reward that a run was trained on; refuse code outside this package.

    A file alone must not get code imported.
    """
    name = str(trained_on.get("reward", "environment"))
    if ":" in name:
        raise ConfigError(
            f"the run was trained on the reward {name!r}, code outside this package: give it with "
            f"--reward {name}, or another reward"
        )
    return name


def _trained_on(run: Path) -> dict[str, float | str]:
    """Return `reward` and `reward_scale` of a run's configuration; {} if it cannot be read."""
    try:
        method = read_object(run / "config.json", ConfigError)["method"]
        return {name: method[name] for name in ("reward", "reward_scale")}
    except (ConfigError, LookupError, TypeError):
        return {}


def _joined(files: Sequence[tuple[int, Mapping[str, Floats]]]) -> dict[str, Floats]:
    """Return the columns that all files with turns have, concatenated."""
    filled = [columns for turns, columns in files if turns]
    shared = set.intersection(*(set(columns) for columns in filled)) if filled else set()
    return {name: np.concatenate([columns[name] for columns in filled]) for name in sorted(shared)}
