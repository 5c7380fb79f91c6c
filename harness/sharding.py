"""Models whose weights lie in parts on several processes: FSDP2 (`fully_shard` of torch).

Every process holds its part of each weight, its gradient and its optimizer state; whole weights are
there layer by layer, while a layer runs. Reference: FSDP, arXiv:2304.11277, section 3.

Checkpoints have one format for any number of processes: whole tensors by the parameters' names. In
one process nothing here changes a model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final
from weakref import WeakKeyDictionary

import torch

Named = Iterable[tuple[str, torch.Tensor]]
"""Parameters with their names."""

Run = Callable[..., Any]
"""Calls its first argument with the others, where weights are whole that it uses."""


class _Whole(torch.nn.Module):
    """Runs any function of a model as its forward pass."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return work(*args, **kwargs)


_ROOTS: Final[WeakKeyDictionary[torch.nn.Module, _Whole]] = WeakKeyDictionary()


def directly(work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Run a function of a model that is whole."""
    return work(*args, **kwargs)


def shard(model: Any, device: torch.device) -> Run:
    """Leave this process its part of a model's weights, and return how functions of it are run.

    Layers one by one, then the rest. Gradients of the processes are added, not averaged: losses are
    divided by the whole mini-batch's tokens or sequences already. A model that is sharded stays as
    it is. All processes call this, and every function that is run; the functions may take different
    ways through the rest of the model, such as its eyes, but not through layers.

    Args:
        model: Of transformers, or any module without layers; on the CPU or on `device`.
        device: Where this process computes.
    """
    if model not in _ROOTS:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import FSDPModule, fully_shard

        size = torch.distributed.get_world_size()
        mesh = init_device_mesh(device.type, (size,))
        whole = _Whole(model)
        for part in (*_layers(model), whole):
            fully_shard(part, mesh=mesh, reshard_after_forward=True)
        for module in whole.modules():
            if isinstance(module, FSDPModule):
                module.set_gradient_divide_factor(1.0)
                module.set_force_sum_reduction_for_comms(True)
        assert isinstance(whole, FSDPModule)
        whole.set_reduce_scatter_unused_params(True)
        _ROOTS[model] = whole
    return _ROOTS[model]


def _layers(model: Any) -> list[torch.nn.Module]:
    """Return the layers of a language model, none of its eyes'."""
    base = getattr(model, "base_model", model)
    return list(getattr(getattr(base, "language_model", base), "layers", ()))


def whole(tensor: Any) -> Any:
    """Return a tensor that processes share as each needs it; all others as they are."""
    gather = getattr(tensor, "full_tensor", None)
    return gather().detach() if gather else tensor


def is_sharded(tensors: Iterable[Any]) -> bool:
    """Return whether processes share any of the tensors."""
    return any(hasattr(tensor, "full_tensor") for tensor in tensors)


def clip(parameters: Iterable[torch.Tensor], max_norm: float) -> float:
    """Cut the gradients' common norm to `max_norm`, that of all processes, and return it."""
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    return float(whole(norm))


def full_state(module: torch.nn.Module) -> dict[str, Any]:
    """Return a module's whole weights; of a sharded one only to the first process, on its CPU.

    Weights that have two names are one tensor here, too.
    """
    state = module.state_dict(keep_vars=True)
    if not is_sharded(state.values()):
        return module.state_dict()
    kept: dict[int, Any] = {}
    for value in state.values():
        if id(value) not in kept:
            kept[id(value)] = _for_first(value)
    return {name: kept[id(value)] for name, value in state.items()} if _is_first() else {}


def load_full_state(module: torch.nn.Module, state: Mapping[str, Any]) -> None:
    """Take over whole weights; every process of a sharded module is given all of them.

    Raises:
        RuntimeError: They are another module's.
    """
    own = module.state_dict()
    if not is_sharded(own.values()):
        module.load_state_dict(dict(state))
        return
    if own.keys() != state.keys() or any(own[n].shape != state[n].shape for n in own):
        raise RuntimeError("its weights are those of another model")
    with torch.no_grad():
        for name, value in own.items():
            value.copy_(_like(state[name], value))


def optimizer_state(optimizer: torch.optim.Optimizer, named: Named) -> dict[str, Any]:
    """Return an optimizer's state by its parameters' names; see `full_state` for what is whole."""
    names, packed = _names(optimizer, named), optimizer.state_dict()
    groups = [
        {**group, "params": [names[i] for i in group["params"]]} for group in packed["param_groups"]
    ]
    sharded = is_sharded(_parameters(optimizer))
    take = _for_first if sharded else (lambda value: value)
    state = {
        names[i]: {key: take(value) for key, value in of_one.items()}
        for i, of_one in packed["state"].items()
    }
    return {"state": state, "param_groups": groups}


def load_optimizer_state(
    optimizer: torch.optim.Optimizer, named: Named, state: Mapping[str, Any]
) -> None:
    """Go on from `optimizer_state`, of any number of processes.

    Parameters may have numbers in place of names, as torch and older versions write them.

    Raises:
        RuntimeError: It is another model's.
    """
    parameters = _parameters(optimizer)
    place = {name: i for i, name in enumerate(_names(optimizer, named))}
    known = [*place, *place.values()]
    groups = state["param_groups"]
    if any(key not in known for group in groups for key in group["params"]):
        raise RuntimeError("its optimizer is that of another model")
    packed = {
        place.get(key, key): {
            name: _like(value, parameters[place.get(key, key)]) for name, value in of_one.items()
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


def _for_first(value: Any) -> Any:
    """Return a tensor whole and on the CPU in the first process, None in the others."""
    if not isinstance(value, torch.Tensor):
        return value
    found = whole(value)
    return found.cpu() if _is_first() else None


def _like(value: Any, shared: Any) -> Any:
    """Return this process's part of a whole tensor, laid out as `shared` is."""
    if not hasattr(shared, "full_tensor") or getattr(value, "shape", None) != shared.shape:
        return value
    from torch.distributed.tensor import distribute_tensor

    own = value.to(shared.device, shared.dtype)
    return distribute_tensor(own, shared.device_mesh, shared.placements, src_data_rank=None)
