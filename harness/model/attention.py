"""Attention over packed sequences: several sequences in one row, with no attention across them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any, Final

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from harness.model.varlen_kernel import VarlenKernel
from harness.types.errors import ConfigError

_varlen: Any = None  # torch has it from 2.10 on
with suppress(ImportError):
    from torch.nn.attention.varlen import varlen_attn as _varlen
_KERNEL: Final = VarlenKernel.of(_varlen)

NAME: Final = "packed_sdpa"
"""transformers' name of `attend`: torch's attention, extended to packed rows."""

_sdpa: Final[Any] = sdpa_attention_forward
_FLASH: Final = "flash_attention"
_HALVES: Final = (torch.float16, torch.bfloat16)


def packing_obstacle(model: Any) -> str | None:
    """Return the reason why a model's attention cannot take packed rows, None if it can."""
    layers = getattr(model.config.get_text_config(), "layer_types", None) or ()
    return obstacle_of(str(model.config._attn_implementation), layers)


def obstacle_of(kind: str, layer_types: Iterable[str]) -> str | None:
    """Return the reason why an attention cannot take packed rows, None if it can.

    Args:
        kind: transformers' name of the attention.
        layer_types: transformers' names of the layers' kinds; none if all are alike.
    """
    if kind.startswith(_FLASH) or kind == NAME:
        return None
    if kind != "sdpa":
        return f"its attention is {kind!r}, and only sdpa and flash attention support it"
    layers = set(layer_types)
    if layers - {"full_attention"}:
        others = ", ".join(sorted(layers - {"full_attention"}))
        return f"it has layers of {others}, which only flash attention supports"
    return None


def allow_packed(model: Any) -> None:
    """Let a model's attention take packed rows.

    Flash attention supports them already. Torch's scaled dot product attention is replaced by
    `attend`, which gives the same result for rows of one sequence.

    Raises:
        ConfigError: The attention cannot take packed rows.
    """
    obstacle = packing_obstacle(model)
    if obstacle is not None:
        raise ConfigError(
            f"optimizer.padding_free is not for this {model.config.model_type}: {obstacle}; set "
            "it to false, or policy.attention to 'sdpa' or 'flash_attention_2'"
        )
    if model.config._attn_implementation == "sdpa":
        model.set_attn_implementation(NAME)


def is_fast(model: Any, device: torch.device, dtype: torch.dtype) -> bool:
    """Return whether a model's attention computes packed rows with one kernel.

    Args:
        model: The model.
        device: Device of its forward pass.
        dtype: Type of the arithmetic.
    """
    if device.type != "cuda" or dtype not in _HALVES or packing_obstacle(model) is not None:
        return False
    return has_kernel(str(model.config._attn_implementation))


def has_kernel(kind: str, kernel: VarlenKernel | None = _KERNEL) -> bool:
    """Return whether a GPU has one kernel for packed rows.

    Args:
        kind: transformers' name of the attention, one without `obstacle_of`.
        kernel: Torch's own; of this torch if left out.
    """
    return kind.startswith(_FLASH) or kernel is not None


def language_model(model: Any) -> Any:
    """Return the layers of a model without its output layer and, if it has one, vision model."""
    return getattr(model.base_model, "language_model", model.base_model)


_OF_IMAGES: Final = "deepstack_visual_embeds"
"""An argument of Qwen3-VL that has a row for each image token, in the order of the tokens."""


def packed_features(
    model: Any, given: dict[str, Any], lengths: Sequence[int], where: torch.Tensor
) -> torch.Tensor:
    """Return the last layer's features that predict tokens, sequences packed. Shape [A, H].

    Args:
        model: A model prepared by `allow_packed`.
        given: Its arguments for B sequences padded on the right to T tokens: `input_ids` [B, T] or
            `inputs_embeds` [B, T, H], and `position_ids` [..., B, T] if they are not 0, 1, 2...;
            what a vision-language model wants beside them.
        lengths: Lengths of the sequences without padding; empty means T each.
        where: True at the A predicted tokens; none is a sequence's first. Shape [B, T].
    """
    rows, width = where.shape
    sizes = list(lengths) or [width] * rows
    index = torch.arange(width, device=where.device)
    real = index < torch.tensor(sizes, device=where.device)[:, None]  # [B, T]
    position = given.get("position_ids", index.expand(rows, width))
    apart = {name: given[name] for name in (_OF_IMAGES,) if name in given}
    by_token = given.keys() - apart.keys() - {"position_ids"}
    out = language_model(model)(
        **{name: given[name][real][None] for name in by_token},
        **apart,
        position_ids=position[..., real].unsqueeze(-2),
        use_cache=False,
        **_boundaries(model, sizes, where.device),
    )
    hidden: torch.Tensor = out.last_hidden_state
    before = where.roll(-1, dims=1)  # whether the next token is to be predicted
    return hidden[0, before[real]]


def _boundaries(model: Any, lengths: Sequence[int], device: torch.device) -> dict[str, Any]:
    """Return the attention's arguments for the boundaries of the sequences in a row."""
    ends = torch.tensor([0, *lengths], dtype=torch.int32).cumsum(0, dtype=torch.int32).to(device)
    arguments: dict[str, Any] = {"cu_seq_lens_q": ends, "cu_seq_lens_k": ends}
    arguments["max_length_q"] = arguments["max_length_k"] = max(lengths)
    if model.config._attn_implementation == NAME:
        # transformers passes a mask of four dimensions on, instead of creating one of T x T.
        arguments["attention_mask"] = torch.ones(1, 1, 1, 1, dtype=torch.bool, device=device)
    return arguments


def attend(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    dropout: float = 0.0,
    scaling: float | None = None,
    cu_seq_lens_q: torch.Tensor | None = None,
    max_length_q: int | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """Return scaled dot product attention, causal within each sequence of a packed row.

    The cost is the sum of the squared lengths of the sequences. A GPU in half precision uses one
    kernel (torch's `varlen_attn`, flash attention 2) where this torch has one that takes this
    scaling; otherwise sequences are computed one by one.

    Args:
        module: The layer.
        query: Shape [B, heads, T, D]; B is 1 in a packed row.
        key: Shape [B, heads of keys, T, D].
        value: Shape [B, heads of keys, T, D].
        attention_mask: Mask of unpacked rows.
        dropout: Dropout of attention weights.
        scaling: Factor of scores; None takes 1 / sqrt(D).
        cu_seq_lens_q: Starts of the sequences, and the end of the last; None in unpacked rows.
        max_length_q: Tokens of the longest sequence.
        **kwargs: Further arguments that transformers passes to an attention.

    Returns:
        The attention's output, shape [B, T, heads, D], and None for the weights.
    """
    plain: dict[str, Any] = {"dropout": dropout, "scaling": scaling}
    if cu_seq_lens_q is None:
        out: tuple[torch.Tensor, None] = _sdpa(
            module, query, key, value, attention_mask, **plain, **kwargs
        )
        return out
    half = _half_precision(query)
    kernel = None if half is None or dropout else _KERNEL
    if kernel is not None and kernel.takes(scaling, query.shape[-1]):
        q, k, v = (x[0].transpose(0, 1).to(half) for x in (query, key, value))
        return kernel.attend(q, k, v, cu_seq_lens_q, int(max_length_q or 0), scaling)[None], None
    ends = cu_seq_lens_q.tolist()
    parts = [
        _sdpa(
            module,
            *(x[:, :, start:end] for x in (query, key, value)),
            None,
            is_causal=True,
            **plain,
        )[0]
        for start, end in pairwise(ends)
    ]
    return torch.cat(parts, dim=1), None


def _half_precision(query: torch.Tensor) -> torch.dtype | None:
    """Return the type for the GPU's variable-length kernel; None if it cannot run."""
    if query.device.type != "cuda":
        return None
    autocast = torch.is_autocast_enabled("cuda")
    dtype = torch.get_autocast_dtype("cuda") if autocast else query.dtype
    return dtype if dtype in _HALVES else None


AttentionInterface.register(NAME, attend)
AttentionMaskInterface.register(NAME, sdpa_mask)
