"""The state of stopped supervised learning, which resumes bit for bit."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import torch

from agentgyms.data import writing
from harness.model.policy import Policy
from harness.runs import fsync, training_state
from harness.types.errors import CheckpointError
from harness.types.json_files import read_object

_WEIGHTS: Final = "weights.pt"
_LOSSES: Final = "losses.json"


def write(
    folder: Path, policy: Policy, optimizer: torch.optim.Optimizer, losses: Sequence[float]
) -> None:
    """Write trainable weights, optimizer, random states and each step's loss (nats per token)."""
    partial = folder.with_name(f".{folder.name}{writing.PARTIAL}")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    learning = {n: p.detach() for n, p in policy.model.named_parameters() if p.requires_grad}
    torch.save(learning, partial / _WEIGHTS)
    (partial / _LOSSES).write_text(json.dumps({"losses": list(losses)}), encoding="utf-8")
    training_state.write(partial, policy, optimizer)
    fsync.flush_all(partial)
    shutil.rmtree(folder, ignore_errors=True)
    writing.replace(partial, folder)


def losses_of(folder: Path) -> list[float]:
    """Return the losses of the steps before a saved state; none if there is no state."""
    if not folder.exists():
        return []
    found = read_object(folder / _LOSSES, CheckpointError).get("losses")
    if not isinstance(found, list) or not all(type(loss) is float for loss in found):
        raise CheckpointError(f"{folder / _LOSSES} is damaged: delete {folder}")
    return found


def read(folder: Path, policy: Policy, optimizer: torch.optim.Optimizer) -> None:
    """Restore weights, optimizer and random states, or raise `CheckpointError`."""
    path = folder / _WEIGHTS
    try:
        weights = torch.load(path, map_location=policy.device, weights_only=True)
        learning = {n: p for n, p in policy.model.named_parameters() if p.requires_grad}
        if {n: p.shape for n, p in learning.items()} != {n: w.shape for n, w in weights.items()}:
            raise ValueError("its weights are those of another model")  # copies would be repeated
        with torch.no_grad():
            for name, parameter in learning.items():
                parameter.copy_(weights[name])
    except Exception as e:  # of a damaged file, torch raises errors of any kind
        reason = " ".join(str(e).split())[:100]
        raise CheckpointError(
            f"{path} cannot be used: {reason}; delete {folder}, and the warm start begins again"
        ) from e
    training_state.read(folder, policy, optimizer)
