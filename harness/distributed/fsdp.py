"""Models sharded over several processes: FSDP2 (`fully_shard` of torch).

Every process holds its shard of each weight, gradient and optimizer state; full weights are
gathered while a layer runs (FSDP, arXiv:2304.11277, section 3). With replicas (hybrid sharding,
section 3.2.2) groups of processes hold one copy each. Checkpoints have full tensors by parameter
name, for any number of processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Final, Literal
from weakref import WeakKeyDictionary

import torch

from harness.distributed.rows import shard_like
from harness.types.errors import ConfigError

Named = Iterable[tuple[str, torch.Tensor]]
"""Pairs of name and parameter."""

Run = Callable[..., Any]
"""Calls its first argument with the other arguments, while the weights that it uses are full."""


class _RootModule(torch.nn.Module):
    """Runs any function of a model as a forward pass, so that FSDP's hooks gather its weights."""

    def __init__(self, model: torch.nn.Module, head: torch.nn.Module | None = None) -> None:
        super().__init__()
        self.model, self.head = model, None if head is None else _RootModule(head)

    def forward(self, work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return work(*args, **kwargs)


_ROOTS: Final[WeakKeyDictionary[torch.nn.Module, _RootModule]] = WeakKeyDictionary()


def run_directly(work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Run a function of a model that is not sharded."""
    return work(*args, **kwargs)


@dataclass(frozen=True, slots=True)
class Layout:
    """How models are sharded."""

    mixed: bool = False  # layers are gathered in bfloat16, and gradients are summed in float32
    replicas: int = 1  # copies of the weights over all processes
    reduce_once: bool = False  # gradients are summed over the processes once per optimizer step
    # The CPU's memory holds AdamW's moments (`"optimizer"`), or weights, gradients and moments
    # (`"parameters"`).
    offload: Literal["optimizer", "parameters"] | None = None
    sequence: int = 1  # processes that share each row of tokens

    def weights_device(self, device: torch.device) -> torch.device:
        """Return the device that holds a process's part of the weights."""
        return torch.device("cpu") if self.offload == "parameters" else device


@dataclass(frozen=True, slots=True)
class ShardedModel:
    """The functions that run functions of a model, and its way of summing gradients."""

    run: Run = run_directly  # runs functions of the model; inside, `run_head` may be called
    run_head: Run = run_directly  # runs functions of an output layer that is gathered on its own
    layout: Layout = Layout()

    def expect(self, *, is_last: bool) -> None:
        """Prepare the next backward pass, the last one before an optimizer step or another one.

        Gradients of all but the last are summed in this process alone if `layout.reduce_once`;
        otherwise within a replica, and over the replicas after the last.
        """
        if isinstance(self.run, _RootModule):
            sharded: Any = self.run
            sharded.set_requires_gradient_sync(is_last or not self.layout.reduce_once)
            sharded.set_requires_all_reduce(is_last)


def shard_model(model: Any, device: torch.device, layout: Layout = Layout()) -> ShardedModel:
    """Shard a transformers model over the processes.

    The output layer is gathered in float32 also if the layout is mixed: logits need its precision,
    and the gradients of its chunks are summed in its type. It is a unit of its own unless it is
    tied to the embedding. In a vision-language model with tied weights it is in bfloat16, because
    it is one unit with the vision encoder, which some processes may not run.
    """
    head = model.get_output_embeddings()
    if head is None or _is_tied(model):
        return ShardedModel(shard(model, device, layout), layout=layout)
    root = shard(model.base_model, device, layout, head)
    return ShardedModel(root, root.head, layout)


def shard(
    model: Any, device: torch.device, layout: Layout = Layout(), head: torch.nn.Module | None = None
) -> Any:
    """Shard a model over the processes, and return the function that runs functions of the model.

    The embedding and each layer are sharded on their own, then the rest. Gradients are summed, not
    averaged: losses are already divided by the tokens or sequences of the full mini-batch. A
    sharded model is not changed. All processes call this function and every function that is run.
    These may use the rest of the model differently, such as its vision encoder, but not its layers.
    `head` is a module that the root's `head` runs inside the root's pass; it is gathered in
    float32.
    """
    if model not in _ROOTS:
        from torch.distributed.fsdp import (
            CPUOffloadPolicy,
            FSDPModule,
            MixedPrecisionPolicy,
            OffloadPolicy,
            fully_shard,
        )

        root, mesh = _RootModule(model, head), mesh_of(device, layout.replicas)
        exact, mixed = MixedPrecisionPolicy(), MixedPrecisionPolicy(torch.bfloat16, torch.float32)
        chosen = mixed if layout.mixed else exact
        own = CPUOffloadPolicy(pin_memory=device.type == "cuda")
        where = own if layout.offload == "parameters" else OffloadPolicy()
        unit = partial(fully_shard, mesh=mesh, reshard_after_forward=True, offload_policy=where)
        parts = [*_embedding(model), *_layers(model)]
        for part in parts:
            unit(part, mp_policy=chosen)
        if root.head is not None:
            unit(root.head, mp_policy=exact)
        holds_head = _is_tied(model) and not hasattr(model.base_model, "visual")
        unit(root, mp_policy=exact if holds_head else chosen)
        for part, following in pairwise(parts):
            part.set_modules_to_forward_prefetch([following])  # type: ignore[operator]
        for module in root.modules():
            if isinstance(module, FSDPModule):
                module.set_gradient_divide_factor(1.0)
                module.set_force_sum_reduction_for_comms(True)
        assert isinstance(root, FSDPModule)
        root.set_reduce_scatter_unused_params(True)
        _ROOTS[model] = root
    return _ROOTS[model]


def mesh_of(device: torch.device, replicas: int = 1) -> Any:
    """Return the mesh of the processes: one group, or groups that hold one copy each."""
    from torch.distributed.device_mesh import init_device_mesh

    size, key = torch.distributed.get_world_size(), (device.type, replicas)
    if size % replicas:
        raise ConfigError(replicas_error(replicas, size))
    if key not in _MESHES:  # each new one would open new connections
        shape = (replicas, size // replicas) if replicas > 1 else (size,)
        names = ("replicate", "shard")[-len(shape) :]
        _MESHES[key] = init_device_mesh(device.type, shape, mesh_dim_names=names)
    return _MESHES[key]


_MESHES: Final[dict[tuple[str, int], Any]] = {}


def replicas_error(replicas: int, processes: int) -> str:
    """Return the message for a number of replicas that does not divide that of the processes."""
    return (
        f"policy.replicas is {replicas}, which does not divide the {processes} processes: use a "
        "divisor, such as the number of machines"
    )


def _embedding(model: Any) -> list[torch.nn.Module]:
    """Return the embedding of a model unless its output layer shares its weights."""
    find = getattr(model, "get_input_embeddings", None)
    return [] if find is None or _is_tied(model) else [find()]


def _is_tied(model: Any) -> bool:
    head = getattr(model, "get_output_embeddings", lambda: None)()
    return head is not None and head.weight is model.get_input_embeddings().weight


def _layers(model: Any) -> list[torch.nn.Module]:
    """Return the layers of a language model, without those of its vision encoder."""
    base = getattr(model, "base_model", model)
    return list(getattr(getattr(base, "language_model", base), "layers", ()))


def full_tensor(tensor: Any) -> Any:
    """Return the full tensor of a sharded one; any other value unchanged."""
    if not hasattr(tensor, "full_tensor"):
        return tensor
    on_device = tensor.to(tensor.device_mesh.device_type)  # it may lie on the CPU
    return on_device.full_tensor().detach()


def is_sharded(tensors: Iterable[Any]) -> bool:
    """Return whether any of the tensors is sharded."""
    return any(hasattr(tensor, "full_tensor") for tensor in tensors)


def clip_grad_norm(parameters: Iterable[torch.Tensor], max_norm: float) -> float:
    """Clip the gradients' total norm over all processes to `max_norm`; return the norm before."""
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    return float(full_tensor(norm))


def own_state(module: torch.nn.Module) -> dict[str, Any]:
    """Return a module's weights, each as it is sharded; weights with two names are one tensor."""
    state: dict[str, Any] = module.state_dict(keep_vars=True)
    return state if is_sharded(state.values()) else module.state_dict()


def load_full_state(module: torch.nn.Module, state: Mapping[str, Any]) -> None:
    """Load full weights; every process of a sharded module passes all of them."""
    own = module.state_dict()
    if not is_sharded(own.values()):
        module.load_state_dict(dict(state))
        return
    if own.keys() != state.keys() or any(own[n].shape != state[n].shape for n in own):
        raise RuntimeError("its weights are those of another model")
    with torch.no_grad():
        for name, value in own.items():
            value.copy_(shard_like(state[name], value))


def optimizer_state(optimizer: torch.optim.Optimizer, named: Named) -> dict[str, Any]:
    """Return an optimizer's state by parameter name; tensors are sharded like the parameters."""
    names, packed = _names(optimizer, named), optimizer.state_dict()
    groups = [
        {**group, "params": [names[i] for i in group["params"]]} for group in packed["param_groups"]
    ]
    state = {names[i]: dict(of_one) for i, of_one in packed["state"].items()}
    return {"state": state, "param_groups": groups}


def load_optimizer_state(
    optimizer: torch.optim.Optimizer, named: Named, state: Mapping[str, Any]
) -> None:
    """Load the result of `optimizer_state`, saved by any number of processes.

    Parameters may have numbers instead of names, as torch writes them. Raises `RuntimeError` if the
    state belongs to another model.
    """
    parameters = _parameters(optimizer)
    place = {name: i for i, name in enumerate(_names(optimizer, named))}
    known = [*place, *place.values()]
    groups = state["param_groups"]
    if any(key not in known for group in groups for key in group["params"]):
        raise RuntimeError("its optimizer is that of another model")
    packed = {
        place.get(key, key): {
            name: shard_like(value, parameters[place.get(key, key)])
            for name, value in of_one.items()
        }
        for key, of_one in state["state"].items()
    }
    own = [
        {key: group[key] for key in _IMPLEMENTATION if key in group}
        for group in optimizer.param_groups
    ]
    numbered = [
        {**group, **chosen, "params": [place.get(key, key) for key in group["params"]]}
        for group, chosen in zip(groups, own, strict=True)
    ]
    optimizer.load_state_dict({"state": packed, "param_groups": numbered})


_IMPLEMENTATION: Final = ("foreach", "fused")
"""Options of an optimizer that depend on its device; they stay as they are when it is loaded."""


def _parameters(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def _names(optimizer: torch.optim.Optimizer, named: Named) -> list[str]:
    name_of = {id(parameter): name for name, parameter in named}
    return [name_of[id(parameter)] for parameter in _parameters(optimizer)]
