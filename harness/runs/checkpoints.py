"""Checkpoints: written atomically; a run resumed from one repeats the uninterrupted run.

A folder is a complete checkpoint once it has `checkpoint.json`, which is written last, when all
other files are on the disk. After a kill or a loss of power at any moment, the previous or the new
checkpoint is complete. Several processes write at the same time, each its own files; the last file
is the first process's, after all others have written theirs.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import re
import shutil
from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import torch

from harness.annotators import Annotator
from harness.distributed.joining import is_connection_error
from harness.distributed.process_group import SINGLE_PROCESS, ProcessGroup
from harness.model.policy import Policy
from harness.model.weight_average import WeightAverage
from harness.runs import fsync, training_state
from harness.runs.training_state import NO_ANNOTATORS, NO_PARTS, Part
from harness.types.errors import CheckpointError, TrainingError
from harness.types.json_files import read_object

_log = logging.getLogger(__name__)

BEST: Final = "best"
"""Name of the link to the checkpoint with the best validation."""

_Digests = dict[str, tuple[int, str]]
"""Size and SHA-256 of files, by their paths in a folder."""

_DESCRIPTION: Final = "checkpoint.json"
_AVERAGE: Final = "average"
"""Folder in a checkpoint of the model with averaged weights."""
_FOLDER: Final = re.compile(r"step-(\d+)|\.step-(\d+)\.partial")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint on disk: the state after `step` steps.

    Attributes:
        folder: Holds the model in transformers' format and the training state.
        step: Number of completed steps.
        validation: Figures of the evaluation at this step, by name; empty without one.
    """

    folder: Path
    step: int
    validation: Mapping[str, float] = field(default_factory=dict, hash=False)


def save(
    run: Path,
    step: int,
    policy: Policy,
    optimizer: torch.optim.Optimizer,
    annotators: Mapping[str, Annotator] = NO_ANNOTATORS,
    *,
    keep: int,
    keep_best: int = 0,
    best: str = "success",
    validation: Mapping[str, float] | None = None,
    parts: Mapping[str, Part] = NO_PARTS,
    average: WeightAverage | None = None,
) -> Checkpoint:
    """Write the state after `step` steps, then remove checkpoints that are not kept.

    All processes call this, and each writes a part.

    Args:
        run: The run's folder.
        step: Number of completed steps.
        policy: Writes its own files.
        optimizer: Its state is saved.
        annotators: By name; their states are saved.
        keep: Number of newest checkpoints to keep.
        keep_best: Number of best checkpoints to keep besides; of equal ones the earlier.
        best: The figure of `validation` that processes checkpoints; greater is better.
        validation: Figures of the evaluation at this step.
        parts: By name; their states are saved.
        average: Is saved as a model of its own.

    Raises:
        TrainingError: It cannot be written, for instance on a full disk; older ones are unchanged.
        ReportedElsewhere: The same, in the other processes.
    """
    root, processes = run / "checkpoints", policy.processes
    partial = root / f".step-{step:06d}.partial"

    def begin() -> None:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)

    def end() -> Checkpoint:
        saved = _complete(partial, step, validation or {}, digests)
        _remove_old(root, step, keep, keep_best, best)
        return saved

    try:
        processes.run_on_first(begin)
        policy.save(partial)
        training_state.write(partial, policy, optimizer, annotators, parts)
        if average is not None:
            average.save(partial / _AVERAGE)
        processes.run_on_first(lambda: fsync.flush_all(partial))
        digests = _digests(partial, processes)
        return processes.run_on_first(end)
    except Exception as e:  # the libraries that write the files raise errors of any kind
        if not processes.is_first or (isinstance(e, RuntimeError) and is_connection_error(e)):
            raise
        if not (partial / _DESCRIPTION).exists():
            shutil.rmtree(partial, ignore_errors=True)
        raise TrainingError(
            f"the checkpoint of step {step} cannot be written to {root}: {e}; make room there (see "
            "checkpoint.keep and checkpoint.keep_best)"
        ) from e


def adopt(run: Path, step: int, model: Path, *, keep: int) -> Checkpoint:
    """Make a checkpoint of a model that another engine saved; it holds no state to resume from.

    Args:
        run: The run's folder.
        step: Number of completed steps.
        model: A folder that transformers loads, on the same disk: files are linked, not copied.
        keep: Number of newest checkpoints to keep.

    Raises:
        TrainingError: It cannot be written.
    """
    root = run / "checkpoints"
    partial = root / f".step-{step:06d}.partial"
    try:
        shutil.rmtree(partial, ignore_errors=True)
        root.mkdir(exist_ok=True)
        shutil.copytree(model, partial, copy_function=os.link)
        fsync.flush_all(partial)
        saved = _complete(partial, step, {}, _digests(partial, SINGLE_PROCESS))
        _remove_old(root, step, keep, 0, "success")
    except (OSError, shutil.Error) as e:
        raise TrainingError(f"the model of step {step} cannot be linked in {root}: {e}") from e
    return saved


def model_of(folder: Path) -> Path:
    """Return the folder of the model to evaluate and export: that of averaged weights, if any."""
    average = folder / _AVERAGE
    return average if average.is_dir() else folder


def _complete(
    partial: Path, step: int, validation: Mapping[str, float], files: _Digests
) -> Checkpoint:
    """Write the description of a folder with all files, and rename the folder."""
    known = {name: value for name, value in validation.items() if math.isfinite(value)}
    described = {"step": step, "validation": known, "files": files}
    fsync.write(partial / _DESCRIPTION, json.dumps(described, indent=1))
    return _renamed(Checkpoint(partial, step, known))


def _renamed(checkpoint: Checkpoint) -> Checkpoint:
    """Rename a checkpoint's folder to its final name; another one of the same step is removed."""
    final = checkpoint.folder.with_name(f"step-{checkpoint.step:06d}")
    if checkpoint.folder != final:
        fsync.remove(final, _DESCRIPTION)  # the new one counts before it is renamed
        fsync.replace(checkpoint.folder, final)
    return replace(checkpoint, folder=final)


def _remove_old(root: Path, step: int, keep: int, keep_best: int, best: str) -> None:
    """Remove checkpoints up to `step` that are not kept, and incomplete ones."""
    so_far = [checkpoint for checkpoint in _all(root) if checkpoint.step <= step]
    ranked = ranking(so_far, best)
    _link_best(root, ranked[:1])
    kept = [*so_far[-keep:], *ranked[:keep_best]]
    folders = {checkpoint.folder for checkpoint in kept}
    for folder in sorted(root.iterdir()):
        found = _FOLDER.fullmatch(folder.name)
        if found and int(found[1] or found[2]) <= step and folder not in folders:
            fsync.remove(folder, _DESCRIPTION)


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
    fsync.replace(partial, link)


def find_all(run: Path) -> list[Checkpoint]:
    """Return the complete checkpoints of a run, oldest first.

    Raises:
        CheckpointError: The description of one is damaged.
    """
    return _all(run / "checkpoints", strict=True)


def _all(root: Path, *, strict: bool = False) -> list[Checkpoint]:
    found: dict[int, Checkpoint] = {}
    # A complete folder that is not renamed yet replaces one of the same step.
    for description in [
        *root.glob(f"step-*/{_DESCRIPTION}"),
        *root.glob(f".step-*/{_DESCRIPTION}"),
    ]:
        try:
            values = _read(description)
        except CheckpointError:
            if strict:
                raise
            continue
        step = int(values["step"])
        found[step] = Checkpoint(description.parent, step, values.get("validation", {}))
    return [found[step] for step in sorted(found)]


def newest(run: Path) -> Checkpoint | None:
    """Return a run's newest undamaged checkpoint; None if it has none.

    Damaged checkpoints are skipped with a warning.

    Raises:
        CheckpointError: All checkpoints are damaged.
    """
    root = run / "checkpoints"
    saved = {path.parent for path in root.glob(f"*step-*/{_DESCRIPTION}")}
    damages = []
    for folder in sorted(saved, key=_step_of, reverse=True):
        damage = damage_of(folder)
        if not damage:
            values = _read(folder / _DESCRIPTION)
            return Checkpoint(folder, int(values["step"]), values.get("validation", {}))
        damages.append(damage)
        _log.warning("%s; using the checkpoint before it", damage)
    if damages:
        raise CheckpointError(f"no checkpoint of {run} is whole: {'; '.join(damages)}")
    return None


def finish_save(
    run: Path, *, keep: int, keep_best: int = 0, best: str = "success"
) -> Checkpoint | None:
    """Return a run's newest undamaged checkpoint, after finishing an interrupted `save`.

    A kill may have come before the folder was renamed, or before the link to the best was set and
    old checkpoints were removed. Arguments are those of `save`. Returns None without a checkpoint.

    Raises:
        CheckpointError: All checkpoints are damaged, or the `save` cannot be finished.
    """
    found = newest(run)
    if found is None:
        return None
    root = run / "checkpoints"
    try:
        found = _renamed(found)
        _remove_old(root, found.step, keep, keep_best, best)
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
    """Return what is wrong with the files of a checkpoint; "" if they are undamaged.

    Checkpoints of older versions have no digests, so nothing is compared.
    """
    try:
        files = _read(folder / _DESCRIPTION).get("files", {})
    except CheckpointError as e:
        return str(e)
    for name, (size, digest) in files.items():
        path = folder / name
        try:
            missing = not path.is_file()
        except OSError as e:
            return f"{folder} names a file {name!r:.80} that cannot be read: {e.strerror}"
        if missing:
            return f"{path} is missing"
        if path.stat().st_size != size:
            return f"{path} has {path.stat().st_size} bytes, {size} were written"
        if _digest(path) != digest:
            return f"{path} is damaged: its SHA-256 is not the one that was written"
    return ""


def _digests(folder: Path, processes: ProcessGroup) -> _Digests:
    """Return size and SHA-256 of every file; each process reads its share of them."""

    def of_share() -> _Digests:
        files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        return {
            path.relative_to(folder).as_posix(): (path.stat().st_size, _digest(path))
            for path in processes.share(files)
        }

    found = dict(ChainMap(*processes.gather(processes.run_on_all(of_share))))
    return {name: found[name] for name in sorted(found, key=Path)}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read(description: Path) -> dict[str, Any]:
    try:
        values = read_object(description, CheckpointError)
        step, files = values["step"], values.get("files", {})
        validation = values.get("validation", {})
        if type(step) is not int or not all(map(math.isfinite, validation.values())):
            raise ValueError("step and validation must be numbers")
        if not all(len(described) == 2 for described in files.values()):
            raise ValueError("files must have a size and a digest each")
    except (CheckpointError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as e:
        raise CheckpointError(f"{description} is damaged: {e}; delete its folder") from None
    return values
