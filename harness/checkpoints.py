"""Checkpoints: written whole or not at all, and enough to go on as if nothing had happened."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from harness import training_state
from harness.annotators import Annotator
from harness.errors import CheckpointError
from harness.policy import Policy
from harness.training_state import NONE

_DESCRIPTION = "checkpoint.json"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint on disk: the state after `step` steps.

    Attributes:
        folder: Holds the model in transformers' format, so other tools can load it, and the rest.
        step: Steps completed.
    """

    folder: Path
    step: int


def save(
    run: Path,
    step: int,
    policy: Policy,
    optimizer: torch.optim.Optimizer,
    annotators: Mapping[str, Annotator] = NONE,
    *,
    keep: int,
) -> Checkpoint:
    """Write the state after `step` steps and drop all but the newest `keep` checkpoints.

    The files are written to a temporary folder that is renamed when complete.
    """
    home = run / "checkpoints"
    final, partial = home / f"step-{step:06d}", home / f".step-{step:06d}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    policy.save(partial)
    training_state.write(partial, policy, optimizer, annotators)
    (partial / _DESCRIPTION).write_text(json.dumps({"step": step}), encoding="utf-8")
    shutil.rmtree(final, ignore_errors=True)
    partial.rename(final)
    for old in find_all(run)[:-keep]:
        shutil.rmtree(old.folder)
    return Checkpoint(final, step)


def find_all(run: Path) -> list[Checkpoint]:
    """Return the complete checkpoints of a run, oldest first."""
    descriptions = (run / "checkpoints").glob(f"step-*/{_DESCRIPTION}")
    found = [Checkpoint(path.parent, _read_step(path)) for path in descriptions]
    return sorted(found, key=lambda checkpoint: checkpoint.step)


def _read_step(description: Path) -> int:
    try:
        return int(json.loads(description.read_text(encoding="utf-8"))["step"])
    except (ValueError, KeyError, TypeError) as e:
        raise CheckpointError(f"{description} is damaged: {e}; delete its folder") from None
