"""Checkpoints: written whole or not at all, and enough to go on as if nothing had happened.

A folder is a checkpoint as soon as `checkpoint.json` is in it, which is written last, when all else
is on the disk. At every moment of saving, a kill or a loss of power included, the checkpoint before
or the new one is whole.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import pickle
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import SafetensorError

from harness import durable, training_state
from harness.annotators import Annotator
from harness.errors import CheckpointError, TrainingError
from harness.policy import Policy
from harness.training_state import NONE

_log = logging.getLogger(__name__)

BEST: Final = "best"
"""Link in the folder of checkpoints to the one that did best in validation."""

_DESCRIPTION: Final = "checkpoint.json"
_FOLDER: Final = re.compile(r"step-(\d+)|\.step-(\d+)\.partial")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint on disk: the state after `step` steps.

    Attributes:
        folder: Holds the model in transformers' format, so other tools can load it, and the rest.
        step: Steps completed.
        validation: What the evaluation at this step came to, by name; empty if there was none.
    """

    folder: Path
    step: int
    validation: Mapping[str, float] = field(default_factory=dict, hash=False)


def save(
    run: Path,
    step: int,
    policy: Policy,
    optimizer: torch.optim.Optimizer,
    annotators: Mapping[str, Annotator] = NONE,
    *,
    keep: int,
    keep_best: int = 0,
    best: str = "success",
    validation: Mapping[str, float] | None = None,
) -> Checkpoint:
    """Write the state after `step` steps, then drop checkpoints that are not to be kept.

    Several processes all call it, and the first writes.

    Args:
        run: The run's folder.
        step: Steps completed.
        policy: Writes its own files.
        optimizer: Part of the training state, as annotators are.
        annotators: By name.
        keep: The newest so many are kept.
        keep_best: Beside them the best so many; of equal ones the earlier.
        best: The figure of `validation` that tells which are best; greater is better.
        validation: What the evaluation at this step came to.

    Raises:
        TrainingError: It cannot be written, as on a full disk; those before are left as they are.
    """
    home = run / "checkpoints"
    partial = home / f".step-{step:06d}.partial"
    if not policy.ranks.is_first:  # gathering what processes share takes all of them
        policy.save(partial)
        training_state.write(partial, policy, optimizer, annotators)
        return Checkpoint(partial.with_name(f"step-{step:06d}"), step)
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        policy.save(partial)
        training_state.write(partial, policy, optimizer, annotators)
        saved = _complete(partial, step, validation or {})
        _drop(home, step, keep, keep_best, best)
    except (OSError, RuntimeError, SafetensorError, pickle.PicklingError) as e:
        if isinstance(e, TrainingError):
            raise
        if not (partial / _DESCRIPTION).exists():
            shutil.rmtree(partial, ignore_errors=True)
        raise TrainingError(
            f"the checkpoint of step {step} cannot be written to {home}: {e}; make room there (see "
            "checkpoint.keep and checkpoint.keep_best)"
        ) from e
    return saved


def _complete(partial: Path, step: int, validation: Mapping[str, float]) -> Checkpoint:
    """Make a checkpoint of a folder with all its files, and give it its name."""
    durable.flush_all(partial)
    known = {name: value for name, value in validation.items() if math.isfinite(value)}
    described = {"step": step, "validation": known, "files": _digests(partial)}
    durable.write(partial / _DESCRIPTION, json.dumps(described, indent=1))
    return _named(Checkpoint(partial, step, known))


def _named(whole: Checkpoint) -> Checkpoint:
    """Give a checkpoint its name, unless it has it; another of the same step is removed."""
    final = whole.folder.with_name(f"step-{whole.step:06d}")
    if whole.folder != final:
        durable.remove(final, _DESCRIPTION)  # until it has its name, the new one counts without it
        durable.replace(whole.folder, final)
    return replace(whole, folder=final)


def _drop(home: Path, step: int, keep: int, keep_best: int, best: str) -> None:
    """Remove what is not to be kept of the steps so far, and leftovers of kills."""
    so_far = [checkpoint for checkpoint in _all(home) if checkpoint.step <= step]
    ranked = ranking(so_far, best)
    _link(home, ranked[:1])
    kept = [*so_far[-keep:], *ranked[:keep_best]]
    folders = {checkpoint.folder for checkpoint in kept}
    for folder in sorted(home.iterdir()):
        found = _FOLDER.fullmatch(folder.name)
        if found and int(found[1] or found[2]) <= step and folder not in folders:
            durable.remove(folder, _DESCRIPTION)


def ranking(found: Sequence[Checkpoint], best: str) -> list[Checkpoint]:
    """Return checkpoints that have the figure `best`, the best first, of equal ones the earlier."""
    judged = [checkpoint for checkpoint in found if best in checkpoint.validation]
    return sorted(judged, key=lambda checkpoint: (-checkpoint.validation[best], checkpoint.step))


def _link(home: Path, best: Sequence[Checkpoint]) -> None:
    """Let the link lead to the best checkpoint; it is not there where none was judged."""
    link = home / BEST
    if link.is_dir() and not link.is_symlink():
        shutil.rmtree(link)  # whoever copied the run copied what the link leads to
    if not best:
        link.unlink(missing_ok=True)
        return
    partial = home / f".{BEST}.partial"
    partial.unlink(missing_ok=True)
    partial.symlink_to(best[0].folder.name, target_is_directory=True)
    durable.replace(partial, link)


def find_all(run: Path) -> list[Checkpoint]:
    """Return the complete checkpoints of a run, oldest first.

    Raises:
        CheckpointError: The description of one is damaged.
    """
    return _all(run / "checkpoints", strict=True)


def _all(home: Path, *, strict: bool = False) -> list[Checkpoint]:
    found: dict[int, Checkpoint] = {}
    # A complete one that lacks its name was about to replace one of the same step.
    for description in [
        *home.glob(f"step-*/{_DESCRIPTION}"),
        *home.glob(f".step-*/{_DESCRIPTION}"),
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
    """Return a run's newest checkpoint that is whole; None if it has saved none yet.

    Damaged ones are passed over with a warning.

    Raises:
        CheckpointError: There are some, and none is whole.
    """
    home = run / "checkpoints"
    saved = {path.parent for path in home.glob(f"*step-*/{_DESCRIPTION}")}
    damages = []
    for folder in sorted(saved, key=_step_of, reverse=True):
        damage = damage_of(folder)
        if not damage:
            values = _read(folder / _DESCRIPTION)
            return Checkpoint(folder, int(values["step"]), values.get("validation", {}))
        damages.append(damage)
        _log.warning("%s; the checkpoint before it is taken", damage)
    if damages:
        raise CheckpointError(f"no checkpoint of {run} is whole: {'; '.join(damages)}")
    return None


def take_up(
    run: Path, *, keep: int, keep_best: int = 0, best: str = "success"
) -> Checkpoint | None:
    """Return a run's newest checkpoint that is whole, after the end of a saving that was cut off.

    A kill may have come after all was written and before it had its name, or before the link to the
    best was set and older ones were dropped. Arguments are those of `save`; None if there is none.

    Raises:
        CheckpointError: There are some and none is whole, or that saving cannot be ended.
    """
    found = newest(run)
    if found is None:
        return None
    home = run / "checkpoints"
    try:
        found = _named(found)
        _drop(home, found.step, keep, keep_best, best)
    except OSError as e:
        raise CheckpointError(
            f"the run cannot go on from step {found.step}, for {home} cannot be changed: {e}; make "
            "room there, or let this process write to it"
        ) from e
    return found


def _step_of(folder: Path) -> tuple[int, bool]:
    found = _FOLDER.fullmatch(folder.name)
    return (int(found[1] or found[2]), bool(found[2])) if found else (-1, False)


def damage_of(folder: Path) -> str:
    """Return what is wrong with the files of a checkpoint; "" if they are as they were written.

    Those of older versions have no digests: there is nothing to compare with.
    """
    try:
        files = _read(folder / _DESCRIPTION).get("files", {})
    except CheckpointError as e:
        return str(e)
    for name, (size, digest) in files.items():
        path = folder / name
        if not path.is_file():
            return f"{path} is missing"
        if path.stat().st_size != size:
            return f"{path} has {path.stat().st_size} bytes, {size} were written"
        if _digest(path) != digest:
            return f"{path} is damaged: its SHA-256 is not the one that was written"
    return ""


def _digests(folder: Path) -> dict[str, tuple[int, str]]:
    """Return size and SHA-256 of every file, by its path in the folder."""
    return {
        path.relative_to(folder).as_posix(): (path.stat().st_size, _digest(path))
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read(description: Path) -> dict[str, Any]:
    try:
        values = json.loads(description.read_text(encoding="utf-8"))
        int(values["step"])
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise CheckpointError(f"{description} is damaged: {e}; delete its folder") from None
    return dict(values)
