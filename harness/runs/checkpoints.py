"""Checkpoints on the disk: completeness, damage, and the ones to keep.

A folder is a complete checkpoint once it has `checkpoint.json`, which `saving` writes last, when
all other files are on the disk. A run resumed from one repeats the uninterrupted run.
"""

from __future__ import annotations

import logging
import math
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from agentgyms.data import writing
from harness.runs import file_digests, fsync
from harness.types.errors import CheckpointError
from harness.types.json_files import read_object

_log = logging.getLogger(__name__)

BEST: Final = "best"
"""Name of the link to the checkpoint with the best validation."""

DESCRIPTION: Final = "checkpoint.json"
AVERAGE: Final = "average"
"""Folder in a checkpoint of the model with averaged weights."""
_FOLDER: Final = re.compile(r"step-(\d+)|\.step-(\d+)\.partial")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint on disk: the state after `step` steps.

    Attributes:
        folder: Has the model in transformers' format and the training state.
        step: Number of completed steps.
        validation: Figures of the evaluation at this step, by name; empty without one.
    """

    folder: Path
    step: int
    validation: Mapping[str, float] = field(default_factory=dict, hash=False)


def model_of(folder: Path) -> Path:
    """Return the folder of the model to evaluate and export: that of averaged weights, if any."""
    average = folder / AVERAGE
    return average if average.is_dir() else folder


def renamed(checkpoint: Checkpoint) -> Checkpoint:
    """Rename a checkpoint's folder to its final name; another one of the same step is removed."""
    final = checkpoint.folder.with_name(f"step-{checkpoint.step:06d}")
    if checkpoint.folder != final:
        fsync.remove(final, DESCRIPTION)  # the new one counts before it is renamed
        writing.replace(checkpoint.folder, final)
    return replace(checkpoint, folder=final)


def remove_old(root: Path, step: int, keep: int, keep_best: int, best: str) -> None:
    """Remove checkpoints up to `step` that are not kept, and incomplete ones."""
    so_far = [checkpoint for checkpoint in _all(root) if checkpoint.step <= step]
    ranked = ranking(so_far, best)
    _link_best(root, ranked[:1])
    kept = [*so_far[-keep:], *ranked[:keep_best]]
    folders = {checkpoint.folder for checkpoint in kept}
    for folder in sorted(root.iterdir()):
        if 0 <= _step_of(folder)[0] <= step and folder not in folders:
            fsync.remove(folder, DESCRIPTION)


def ranking(found: Sequence[Checkpoint], best: str) -> list[Checkpoint]:
    """Return the checkpoints that have the figure `best`, best first; of equal ones the earlier."""
    rated = [checkpoint for checkpoint in found if best in checkpoint.validation]
    return sorted(rated, key=lambda checkpoint: (-checkpoint.validation[best], checkpoint.step))


def _link_best(root: Path, best: Sequence[Checkpoint]) -> None:
    """Point the link to the best checkpoint; remove it if there is none."""
    link = root / BEST
    if link.is_dir() and not link.is_symlink():
        shutil.rmtree(link)  # copying a run may replace the link by a copy of the checkpoint
    if not best:
        link.unlink(missing_ok=True)
        return
    partial = root / f".{BEST}.partial"
    partial.unlink(missing_ok=True)
    partial.symlink_to(best[0].folder.name, target_is_directory=True)
    writing.replace(partial, link)


def find_all(run: Path) -> list[Checkpoint]:
    """Return the complete checkpoints of a run, oldest first; `CheckpointError` for damage."""
    return _all(run / "checkpoints", strict=True)


def _all(root: Path, *, strict: bool = False) -> list[Checkpoint]:
    found: dict[int, Checkpoint] = {}
    # A complete folder that is not renamed yet replaces one of the same step.
    for pattern in ("step-*", ".step-*"):
        for description in root.glob(f"{pattern}/{DESCRIPTION}"):
            try:
                checkpoint = _described(description)
            except CheckpointError:
                if strict:
                    raise
                continue
            found[checkpoint.step] = checkpoint
    return [found[step] for step in sorted(found)]


def newest(run: Path) -> Checkpoint | None:
    """Return a run's newest undamaged checkpoint, or None; `CheckpointError` if all are damaged."""
    root = run / "checkpoints"
    saved = {path.parent for path in root.glob(f"*step-*/{DESCRIPTION}")}
    damages = []
    for folder in sorted(saved, key=_step_of, reverse=True):
        damage = damage_of(folder)
        if not damage:
            return _described(folder / DESCRIPTION)
        damages.append(damage)
        _log.warning("%s; using the checkpoint before it", damage)
    if damages:
        raise CheckpointError(f"no checkpoint of {run} is whole: {'; '.join(damages)}")
    return None


def finish_save(
    run: Path, *, keep: int, keep_best: int = 0, best: str = "success"
) -> Checkpoint | None:
    """Finish an interrupted `save` and return the run's newest undamaged checkpoint, or None.

    A kill may have come before the folder was renamed, before the link to the best was set, or
    before old checkpoints were removed. Arguments are those of `save`. Raises `CheckpointError` if
    all are damaged or the `save` cannot be finished.
    """
    found = newest(run)
    if found is None:
        return None
    root = run / "checkpoints"
    try:
        found = renamed(found)
        remove_old(root, found.step, keep, keep_best, best)
    except OSError as e:
        raise CheckpointError(
            f"the run cannot resume from step {found.step}, because {root} cannot be changed: {e}; "
            "make room there, or let this process write to it"
        ) from e
    return found


def _step_of(folder: Path) -> tuple[int, bool]:
    found = _FOLDER.fullmatch(folder.name)
    return (int(found[1] or found[2]), bool(found[2])) if found else (-1, False)


def damage_of(folder: Path) -> str:
    """Return the damage of a checkpoint's files in words; "" if there is none."""
    try:
        files = _read(folder / DESCRIPTION)["files"]
    except CheckpointError as e:
        return str(e)
    return file_digests.damage_of(folder, files)


def _described(description: Path) -> Checkpoint:
    values = _read(description)
    return Checkpoint(description.parent, int(values["step"]), values.get("validation", {}))


def _read(description: Path) -> dict[str, Any]:
    try:
        values = read_object(description, CheckpointError)
        step, files = values["step"], values["files"]
        validation = values.get("validation", {})
        if type(step) is not int or not all(map(math.isfinite, validation.values())):
            raise ValueError("step and validation must be numbers")
        if not all(len(described) == 2 for described in files.values()):
            raise ValueError("files must have a size and a digest each")
    except (CheckpointError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as e:
        raise CheckpointError(f"{description} is damaged: {e}; delete its folder") from None
    return values
