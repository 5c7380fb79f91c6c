"""Checkpoints: written whole or not at all, and enough to go on as if nothing had happened."""

from __future__ import annotations

import json
import pickle
import random
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from harness.annotators import Annotator
from harness.errors import CheckpointError
from harness.policy import Policy

_NONE: Final[dict[str, Annotator]] = {}
_STATE = "trainer.pt"
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
    annotators: Mapping[str, Annotator] = _NONE,
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
    state = {
        "optimizer": optimizer.state_dict(),
        "random": _random_states(policy.device),
        "annotators": {name: annotator.state_dict() for name, annotator in annotators.items()},
    }
    torch.save(state, partial / _STATE)
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


def load_training_state(
    checkpoint: Checkpoint,
    optimizer: torch.optim.Optimizer,
    device: torch.device,
    annotators: Mapping[str, Annotator] = _NONE,
) -> None:
    """Restore optimizer, annotators and random states; the policy is loaded by `Policy.load`.

    Raises:
        CheckpointError: The file is missing or damaged, or belongs to another model.
    """
    path = checkpoint.folder / _STATE
    try:
        state = torch.load(path, map_location=device, weights_only=True)
        optimizer.load_state_dict(state["optimizer"])
        for name, annotator in annotators.items():
            annotator.load_state_dict(state["annotators"][name])
        _restore_random_states(state["random"], device)
    except (OSError, RuntimeError, KeyError, ValueError, EOFError, pickle.UnpicklingError) as e:
        raise CheckpointError(f"{path} cannot be used: {e}") from e


def _random_states(device: torch.device) -> dict[str, Any]:
    version, internal, gauss = random.getstate()
    name, keys, position, has_gauss, cached = np.random.get_state()  # noqa: NPY002 (others may use it)
    states: dict[str, Any] = {
        "python": [version, list(internal), gauss],
        "numpy": [
            name,
            torch.from_numpy(np.asarray(keys).astype(np.int64)),
            position,
            has_gauss,
            cached,
        ],
        "torch": torch.get_rng_state(),
    }
    if device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(device)
    return states


def _restore_random_states(states: dict[str, Any], device: torch.device) -> None:
    version, internal, gauss = states["python"]
    random.setstate((version, tuple(internal), gauss))
    name, keys, position, has_gauss, cached = states["numpy"]
    words = keys.cpu().numpy().astype(np.uint32)
    np.random.set_state((name, words, position, has_gauss, cached))  # noqa: NPY002
    torch.set_rng_state(states["torch"].cpu())
    if device.type == "cuda" and "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"].cpu(), device)
