"""The rows of a weight that a process holds, and weights that are read after they are sharded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def own_rows(sharded: Any) -> tuple[int, int]:
    """Return the first row of a sharded tensor that this process holds, and the end of its rows."""
    mesh, shards = sharded.device_mesh, sharded.device_mesh.size(-1)
    rows = int(sharded.shape[0])
    each = -(-rows // shards)
    start = min(rows, each * mesh.get_local_rank(mesh.ndim - 1))
    return start, min(rows, start + each)


def shard_like(value: Any, sharded: Any) -> Any:
    """Return this process's rows of a full tensor, sharded as `sharded`; other values unchanged."""
    if not hasattr(sharded, "full_tensor") or getattr(value, "shape", None) != sharded.shape:
        return value
    from torch.distributed.tensor import DTensor

    start, end = own_rows(sharded)
    local = torch.empty_like(sharded.to_local()).copy_(value[start:end])
    return DTensor.from_local(
        local,
        sharded.device_mesh,
        sharded.placements,
        run_check=False,
        shape=sharded.shape,
        stride=sharded.stride(),
    )


def place_buffers(model: torch.nn.Module, device: torch.device) -> None:
    """Move the buffers of a model to a device, and leave its weights where they are."""
    for module in model.modules():
        for name, buffer in list(module.named_buffers(recurse=False)):
            module._buffers[name] = buffer.to(device)


@torch.no_grad()
def fill(
    model: torch.nn.Module,  # its parameters are on torch's device "meta"; its buffers are kept
    whole: torch.nn.Module,  # the root that it is sharded by, or the model itself
    device: torch.device,
    # Returns rows of the weight of a name, from the first to the end or to the last.
    read: Callable[[str, int, int | None], torch.Tensor],
) -> None:
    """Give memory to a model without any, sharded or whole, and read its weights."""
    tied: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        tied.setdefault(id(parameter), []).append(name)
    buffers = dict(model.named_buffers())
    whole.to_empty(device=device)
    for name, buffer in model.named_buffers():
        buffer.copy_(buffers[name])
    for name, *others in tied.values():
        weight: Any = model.get_parameter(name)
        for other in others:
            owner, _, own = other.rpartition(".")
            setattr(model.get_submodule(owner), own, weight)
        if not hasattr(weight, "full_tensor"):
            weight.copy_(read(name, 0, None))
        elif weight.to_local().numel():
            weight.to_local().copy_(read(name, *own_rows(weight)))
