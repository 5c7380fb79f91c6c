"""The training state beside the weights: optimizer, annotators and random states."""

from __future__ import annotations

import pickle
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import torch

from harness.annotators import Annotator
from harness.distributed.fsdp import load_optimizer_state, optimizer_state
from harness.model.policy import Policy
from harness.types.errors import CheckpointError

NO_ANNOTATORS: Final[dict[str, Annotator]] = {}


class Part(Protocol):
    """Something beside the policy that training steps change."""

    def state_dict(self) -> dict[str, Any]:
        """Return its state; all processes call this."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore its state."""
        ...


NO_PARTS: Final[dict[str, Part]] = {}
_FILE = "trainer.pt"
_UNUSABLE: Final = (
    OSError,
    RuntimeError,
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    EOFError,
    pickle.UnpicklingError,
)
"""Errors of a damaged file, or one of something else."""


def write(
    folder: Path,
    policy: Policy,
    optimizer: torch.optim.Optimizer,
    annotators: Mapping[str, Annotator] = NO_ANNOTATORS,
    parts: Mapping[str, Part] = NO_PARTS,
) -> None:
    """Write the state into a checkpoint's folder; the policy writes its weights itself.

    All processes call this; the first one writes. The file does not depend on the number of
    processes, except for random states, one for each process.
    """
    state = {
        "optimizer": optimizer_state(optimizer, policy.model.named_parameters()),
        "random": policy.processes.gather(_random_states(policy.device)),
        "annotators": {name: annotator.state_dict() for name, annotator in annotators.items()},
        "parts": {name: part.state_dict() for name, part in parts.items()},
    }
    if policy.processes.is_first:
        torch.save(state, folder / _FILE)


def read(
    folder: Path,
    policy: Policy,
    optimizer: torch.optim.Optimizer,
    annotators: Mapping[str, Annotator] = NO_ANNOTATORS,
    parts: Mapping[str, Part] = NO_PARTS,
) -> None:
    """Restore all but the policy, which `Policy.load` loads.

    Raises:
        CheckpointError: The file is missing or damaged, or belongs to another model.
    """
    path, device, processes = folder / _FILE, policy.device, policy.processes
    try:
        alone = processes.size == 1  # several processes map the file, and read their own rows
        place = device if alone and policy.layout.offload is None else "cpu"
        state = torch.load(path, map_location=place, weights_only=True, mmap=not alone)
        load_optimizer_state(optimizer, policy.model.named_parameters(), state["optimizer"])
        for name, annotator in annotators.items():
            annotator.load_state_dict(state["annotators"][name])
        for name, part in parts.items():
            part.load_state_dict(state["parts"][name])
        found = state["random"]
        by_rank = found if isinstance(found, list) else [found]  # older versions had one process
        if processes.rank < len(by_rank):
            _restore_random_states(by_rank[processes.rank], device)
    except _UNUSABLE as e:
        raise _unusable(path, e) from e


def read_annotator(folder: Path, name: str, annotator: Annotator) -> None:
    """Restore one annotator alone.

    Raises:
        CheckpointError: The file is missing or damaged, or belongs to another model.
    """
    path = folder / _FILE
    try:
        state = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        annotator.load_state_dict(state["annotators"][name])
    except _UNUSABLE as e:
        raise _unusable(path, e) from e


def _unusable(path: Path, error: Exception) -> CheckpointError:
    reason = " ".join(str(error).split())  # torch's words may take many lines
    return CheckpointError(f"{path} cannot be used: {reason:.150}")


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
