"""Models sharded over several processes: FSDP2 (`fully_shard` of torch).

Every process holds its shard of each weight, gradient and optimizer state; full weights are
gathered layer by layer, while a layer runs. Reference: FSDP, arXiv:2304.11277, section 3.

Checkpoints have one format for any number of processes: full tensors by parameter name. In a single
process nothing here changes a model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final
from weakref import WeakKeyDictionary

import torch

Named = Iterable[tuple[str, torch.Tensor]]
"""Pairs of name and parameter."""

Run = Callable[..., Any]
"""Calls its first argument with the other arguments, while the weights that it uses are full."""


class _RootModule(torch.nn.Module):
    """Runs any function of a model as a forward pass, so that FSDP's hooks gather its weights."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return work(*args, **kwargs)


_ROOTS: Final[WeakKeyDictionary[torch.nn.Module, _RootModule]] = WeakKeyDictionary()


def run_directly(work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Run a function of a model that is not sharded."""
    return work(*args, **kwargs)


def shard(model: Any, device: torch.device) -> Run:
    """Shard a model over the processes, and return the function that runs functions of the model.

    Each layer is sharded on its own, then the rest. Gradients of the processes are summed, not
    averaged: losses are already divided by the tokens or sequences of the full mini-batch. A
    sharded model is not changed. All processes call this function and every function that is run.
    These may use the rest of the model differently, such as its vision encoder, but not its layers.

    Args:
        model: A transformers model, or any module without layers; on the CPU or on `device`.
        device: The device of this process.
    """
    if model not in _ROOTS:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import FSDPModule, fully_shard

        size = torch.distributed.get_world_size()
        mesh = init_device_mesh(device.type, (size,))
        root = _RootModule(model)
        for part in (*_layers(model), root):
            fully_shard(part, mesh=mesh, reshard_after_forward=True)
        for module in root.modules():
            if isinstance(module, FSDPModule):
                module.set_gradient_divide_factor(1.0)
                module.set_force_sum_reduction_for_comms(True)
        assert isinstance(root, FSDPModule)
        root.set_reduce_scatter_unused_params(True)
        _ROOTS[model] = root
    return _ROOTS[model]


def _layers(model: Any) -> list[torch.nn.Module]:
    """Return the layers of a language model, without those of its vision encoder."""
    base = getattr(model, "base_model", model)
    return list(getattr(getattr(base, "language_model", base), "layers", ()))


def full_tensor(tensor: Any) -> Any:
    """Return the full tensor of a sharded one; any other value unchanged."""
    gather = getattr(tensor, "full_tensor", None)
    return gather().detach() if gather else tensor


def is_sharded(tensors: Iterable[Any]) -> bool:
    """Return whether any of the tensors is sharded."""
    return any(hasattr(tensor, "full_tensor") for tensor in tensors)


def clip_grad_norm(parameters: Iterable[torch.Tensor], max_norm: float) -> float:
    """Clip the gradients' total norm over all processes to `max_norm`; return the norm before."""
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    return float(full_tensor(norm))


def full_state(module: torch.nn.Module) -> dict[str, Any]:
    """Return a module's full weights; of a sharded one on the CPU of the first process, else {}.

    Weights with two names stay one tensor.
    """
    state = module.state_dict(keep_vars=True)
    if not is_sharded(state.values()):
        return module.state_dict()
    kept: dict[int, Any] = {}
    for value in state.values():
        if id(value) not in kept:
            kept[id(value)] = _gather_to_first(value)
    return {name: kept[id(value)] for name, value in state.items()} if _is_first() else {}


def load_full_state(module: torch.nn.Module, state: Mapping[str, Any]) -> None:
    """Load full weights; every process of a sharded module passes all of them.

    Raises:
        RuntimeError: The weights belong to another module.
    """
    own = module.state_dict()
    if not is_sharded(own.values()):
        module.load_state_dict(dict(state))
        return
    if own.keys() != state.keys() or any(own[n].shape != state[n].shape for n in own):
        raise RuntimeError("its weights are those of another model")
    with torch.no_grad():
        for name, value in own.items():
            value.copy_(_shard_like(state[name], value))


def optimizer_state(optimizer: torch.optim.Optimizer, named: Named) -> dict[str, Any]:
    """Return an optimizer's state by parameter name; tensors are full as in `full_state`."""
    names, packed = _names(optimizer, named), optimizer.state_dict()
    groups = [
        {**group, "params": [names[i] for i in group["params"]]} for group in packed["param_groups"]
    ]
    sharded = is_sharded(_parameters(optimizer))
    take = _gather_to_first if sharded else (lambda value: value)
    state = {
        names[i]: {key: take(value) for key, value in of_one.items()}
        for i, of_one in packed["state"].items()
    }
    return {"state": state, "param_groups": groups}


def load_optimizer_state(
    optimizer: torch.optim.Optimizer, named: Named, state: Mapping[str, Any]
) -> None:
    """Load the result of `optimizer_state`, saved by any number of processes.

    Parameters may have numbers instead of names, as torch and older versions write them.

    Raises:
        RuntimeError: The state belongs to another model.
    """
    parameters = _parameters(optimizer)
    place = {name: i for i, name in enumerate(_names(optimizer, named))}
    known = [*place, *place.values()]
    groups = state["param_groups"]
    if any(key not in known for group in groups for key in group["params"]):
        raise RuntimeError("its optimizer is that of another model")
    packed = {
        place.get(key, key): {
            name: _shard_like(value, parameters[place.get(key, key)])
            for name, value in of_one.items()
        }
        for key, of_one in state["state"].items()
    }
    numbered = [{**g, "params": [place.get(key, key) for key in g["params"]]} for g in groups]
    optimizer.load_state_dict({"state": packed, "param_groups": numbered})


def _parameters(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def _names(optimizer: torch.optim.Optimizer, named: Named) -> list[str]:
    """Return the names of an optimizer's parameters, in their order."""
    name_of = {id(parameter): name for name, parameter in named}
    return [name_of[id(parameter)] for parameter in _parameters(optimizer)]


def _is_first() -> bool:
    return torch.distributed.get_rank() == 0


def _gather_to_first(value: Any) -> Any:
    """Return a tensor in full on the CPU of the first process, None in the other processes."""
    if not isinstance(value, torch.Tensor):
        return value
    found = full_tensor(value)
    return found.cpu() if _is_first() else None


def _shard_like(value: Any, shared: Any) -> Any:
    """Return this process's shard of a full tensor, with the layout of `shared`."""
    if not hasattr(shared, "full_tensor") or getattr(value, "shape", None) != shared.shape:
        return value
    from torch.distributed.tensor import distribute_tensor

    own = value.to(shared.device, shared.dtype)
    return distribute_tensor(own, shared.device_mesh, shared.placements, src_data_rank=None)
