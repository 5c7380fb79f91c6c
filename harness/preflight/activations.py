"""Activations of a language model and their gradients, counted on tensors without memory.

transformers' own model runs forward and backward on fake tensors (shapes without numbers), with one
and with two layers of each kind, so the count follows the architecture.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakIdKeyDictionary
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.moe import ExpertsInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from harness.config import LoraConfig
from harness.model import adapters
from harness.model.learning_mode import checkpoint_activations, set_learning

NAME: Final = "counted_sdpa"
"""The name in transformers of an attention for fake tensors; on real ones it is the usual one."""

TOKENS: Final = 192
"""Length of the sequence that is counted: whole chunks of 64 tokens of linear attention."""
_HALF: Final = 2
NO_ADAPTERS: Final = LoraConfig()


def layer_kinds(text: Any) -> tuple[str, ...]:
    """Return the kind of each layer of a language model's configuration."""
    kinds = getattr(text, "layer_types", None)
    usual = "sliding" if getattr(text, "sliding_window", None) else "full"
    return tuple(kinds or (f"{usual}_attention",) * text.num_hidden_layers)


@dataclass(frozen=True, slots=True)
class Activations:
    """Bytes of activations of one token."""

    layers: tuple[float, ...]  # each layer's, kept for the backward pass
    rest: float  # kept beside the layers
    stream: int  # bytes of a number between layers
    forward: float  # peak of a layer's forward pass that keeps nothing
    backward: tuple[float, ...]  # each layer's peak, beside what its forward pass kept


@lru_cache(16)
def count(
    text: str,
    weight: int,
    compute: int,
    lora: LoraConfig = NO_ADAPTERS,
    adapter: int = 4,
    *,
    again: bool = False,
) -> Activations:
    """Return the bytes of activations of one token.

    `text` is transformers' configuration of a language model, as JSON; `weight` and `compute` are
    the bytes of a weight and of a number in matrix products (2 or 4), `adapter` those of an
    adapter's weight. Rank 0 of `lora` trains all weights. With `again` the backward pass computes
    activations again (gradient checkpointing).
    """
    from transformers import AutoConfig

    fields = json.loads(text)
    config = AutoConfig.for_model(**fields)
    kinds = layer_kinds(config)
    layer, beside, rest, forward = {}, {}, 0.0, 0.0
    for kind in dict.fromkeys(kinds):
        one, two = (
            _measure(fields, [kind] * n, weight, compute, lora, adapter, again) for n in (1, 2)
        )
        before = config.hidden_size * weight if again else one.kept
        layer[kind], beside[kind] = two.kept - one.kept, one.backward - before
        rest = max(rest, 2 * one.kept - two.kept)
        forward = max(forward, one.forward)
    kept, more = (tuple(values[kind] for kind in kinds) for values in (layer, beside))
    return Activations(kept, rest, weight, forward, more)


class Tracker(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the bytes of live tensors that operations make; `most` is their peak."""

    def __init__(self, is_counted: Callable[[torch.Tensor], bool] = lambda _: True) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.most, self._is_counted = 0, is_counted
        self._alive = WeakIdKeyDictionary()

    def add(self, tensor: torch.Tensor) -> None:
        """Count a tensor from now on."""
        self._alive[tensor.untyped_storage()] = True

    def __torch_dispatch__(
        self, operation: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Run an operation and count its results; of a sharded tensor, this process's part."""
        if DTensor in types:
            return NotImplemented
        found = operation(*args, **(kwargs or {}))
        for one in tree_leaves(found):
            if isinstance(one, torch.Tensor) and self._is_counted(one):
                self.add(one)
        now = sum(storage.nbytes() for storage in list(self._alive))
        self.most = max(self.most, now)
        return found


@dataclass(frozen=True, slots=True)
class _Measured:
    """Bytes of one token: kept for the backward pass, and the most in passes."""

    kept: float
    forward: float
    backward: float


def _measure(
    fields: dict[str, Any],
    kinds: list[str],
    weight: int,
    compute: int,
    lora: LoraConfig,
    adapter: int,
    again: bool,
) -> _Measured:
    """Return the bytes of a model with these layers, but for weights and their gradients."""
    held: dict[int, int] = {}
    alive = []  # so that no storage takes another one's place
    model = _model(fields, kinds, weight, lora)
    if adapter == _HALF:
        model.to(torch.bfloat16)
    with FakeTensorMode() as fake:
        fill(model)
        weights = {_storage(parameter) for parameter in model.parameters()}
        shapes = {parameter.shape[-2:] for parameter in model.parameters()}
        shapes |= {shape[::-1] for shape in shapes}
        tokens = torch.zeros(1, TOKENS, dtype=torch.long)

        def is_activation(tensor: torch.Tensor) -> bool:
            own = _storage(tensor) not in weights and getattr(tensor, "fake_mode", None) is fake
            return own and tensor.shape not in shapes

        def keep(tensor: torch.Tensor) -> torch.Tensor:
            copied = compute < weight and tensor.shape in shapes  # autocast's copy of a weight
            if _storage(tensor) not in weights and not copied:
                held[_storage(tensor)] = tensor.untyped_storage().nbytes()
                alive.append(tensor)
            return tensor

        def run() -> torch.Tensor:
            with torch.autocast("cpu", torch.bfloat16, enabled=compute < weight):
                found: torch.Tensor = model(input_ids=tokens, use_cache=False).last_hidden_state
            return found

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            run()
        alive.clear()
        with Tracker(is_activation) as forward, torch.no_grad():
            run()
        if again:
            checkpoint_activations(model)
            set_learning(model)
        with Tracker(is_activation) as backward:
            run().sum().backward()  # type: ignore[no-untyped-call]
    return _Measured(*(n / TOKENS for n in (sum(held.values()), forward.most, backward.most)))


def _model(fields: dict[str, Any], kinds: list[str], weight: int, lora: LoraConfig) -> Any:
    from transformers import AutoConfig, AutoModel

    config = AutoConfig.for_model(**fields)
    config.num_hidden_layers = len(kinds)
    if getattr(config, "layer_types", None):
        config.layer_types = kinds
    return made(AutoModel, config, weight, lora)


def made(kind: Any, config: Any, weight: int, lora: LoraConfig) -> Any:
    """Return a model on the `meta` device, in an update's mode; a weight has 2 or 4 bytes."""
    dtype = torch.bfloat16 if weight == _HALF else torch.float32
    with torch.device("meta"):
        model = kind.from_config(
            config, dtype=dtype, attn_implementation=NAME, experts_implementation=NAME
        )
        if lora.rank:
            adapters.add(model, lora, "", 0)
    set_learning(model)
    return model


def fill(model: Any) -> None:
    """Replace the tensors of a model on the `meta` device by fake ones on the CPU."""
    found: dict[int, torch.Tensor] = {}
    for module in model.modules():
        for own in (module._parameters, module._buffers):
            for name, tensor in own.items():
                if tensor is not None:
                    if id(tensor) not in found:
                        found[id(tensor)] = _like(tensor)
                    own[name] = found[id(tensor)]


def _like(tensor: torch.Tensor) -> torch.Tensor:
    empty = torch.empty(tensor.shape, dtype=tensor.dtype)
    if isinstance(tensor, torch.nn.Parameter):
        return torch.nn.Parameter(empty, requires_grad=tensor.requires_grad)
    return empty


def _storage(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _one_expert(
    module: Any, hidden: torch.Tensor, chosen: torch.Tensor, share: torch.Tensor
) -> torch.Tensor:
    """Compute all rows of grouped experts with the first expert, in the type of the weights."""

    def order(weights: torch.Tensor) -> torch.Tensor:
        return weights[0].T if module.is_transposed else weights[0]

    linear = torch.nn.functional.linear
    with torch.autocast("cpu", enabled=False):
        rows = hidden[torch.arange(chosen.numel()) // chosen.shape[-1]]  # [tokens x experts, H]
        rows = rows.to(module.down_proj.dtype)
        rows = module._apply_gate(linear(rows, order(module.gate_up_proj)))
        rows = linear(rows, order(module.down_proj)) * share.reshape(-1, 1)
    return rows.view(*chosen.shape, -1).sum(1).to(hidden.dtype)


def _causal_mask(*args: Any, **kwargs: Any) -> Any:
    """Leave the mask away where transformers would; it cannot tell that from fake tensors."""
    return sdpa_mask(*args, **kwargs | {"allow_is_causal_skip": True})


AttentionInterface.register(NAME, sdpa_attention_forward)
AttentionMaskInterface.register(NAME, _causal_mask)
ExpertsInterface.register(NAME, _one_expert)
