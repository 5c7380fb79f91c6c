"""Attention over sequences that lie one behind the other in one row, and none across them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any, Final

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from harness.errors import ConfigError

_varlen: Any = None  # torch has it from 2.10 on
with suppress(ImportError):
    from torch.nn.attention.varlen import varlen_attn as _varlen

NAME: Final = "packed_sdpa"
"""Transformers' name of the attention below: torch's own, for rows of several sequences too."""

_sdpa: Final[Any] = sdpa_attention_forward
_FLASH: Final = "flash_attention"
_HALVES: Final = (torch.float16, torch.bfloat16)


def takes_packed(model: Any) -> str | None:
    """Return why a model's attention cannot take rows of several sequences, None if it can."""
    kind = str(model.config._attn_implementation)
    if kind.startswith(_FLASH) or kind == NAME:
        return None
    if kind != "sdpa":
        return f"its attention is {kind!r}, and only sdpa and flash attention do"
    layers = set(getattr(model.config.get_text_config(), "layer_types", None) or ())
    if layers - {"full_attention"}:
        return f"it has layers of {', '.join(sorted(layers - {'full_attention'}))}: flash does"
    return None


def allow_packed(model: Any) -> None:
    """Let a model's attention take rows of several sequences.

    Flash attention does already. Torch's scaled dot product attention is replaced by `attend`,
    which is the same for rows of one sequence.

    Raises:
        ConfigError: It cannot.
    """
    why = takes_packed(model)
    if why is not None:
        raise ConfigError(
            f"optimizer.padding_free is not for this {model.config.model_type}: {why}; set it to "
            "false, or policy.attention to 'sdpa' or 'flash_attention_2'"
        )
    if model.config._attn_implementation == "sdpa":
        model.set_attn_implementation(NAME)


def is_fast(model: Any, dtype: torch.dtype) -> bool:
    """Return whether a model's attention runs rows of several sequences by one kernel.

    Args:
        model: On its device.
        dtype: Of the arithmetic.
    """
    on_gpu = model.device.type == "cuda"
    if not on_gpu or dtype not in _HALVES or takes_packed(model) is not None:
        return False
    kind = str(model.config._attn_implementation)
    return kind.startswith(_FLASH) or _varlen is not None


def features_in_a_row(
    model: Any, given: dict[str, torch.Tensor], lengths: Sequence[int], where: torch.Tensor
) -> torch.Tensor:
    """Return what a model's last layer says before tokens of sequences in one row. Shape [A, H].

    Args:
        model: Its attention takes them: see `allow_packed`.
        given: Its arguments for B sequences padded on the right to T tokens: `input_ids` [B, T] or
            `inputs_embeds` [B, T, H], and `position_ids` [..., B, T] if they are not 0, 1, 2...
        lengths: Of the sequences without padding; none stands for T each.
        where: True at the A tokens asked for; none is a sequence's first. Shape [B, T].
    """
    rows, width = where.shape
    sizes = list(lengths) or [width] * rows
    place = torch.arange(width, device=where.device)
    real = place < torch.tensor(sizes, device=where.device)[:, None]  # [B, T]
    position = given.get("position_ids", place.expand(rows, width))
    out = model.base_model(
        **{name: x[real][None] for name, x in given.items() if name != "position_ids"},
        position_ids=position[..., real].unsqueeze(-2),
        use_cache=False,
        **_boundaries(model, sizes, where.device),
    )
    hidden: torch.Tensor = out.last_hidden_state
    before = where.roll(-1, dims=1)  # of each token: whether the next one is asked for
    return hidden[0, before[real]]


def _boundaries(model: Any, lengths: Sequence[int], device: torch.device) -> dict[str, Any]:
    """Return what tells a model's attention where the sequences of a row begin and end."""
    ends = torch.tensor([0, *lengths], dtype=torch.int32).cumsum(0, dtype=torch.int32).to(device)
    told: dict[str, Any] = {"cu_seq_lens_q": ends, "cu_seq_lens_k": ends}
    told["max_length_q"] = told["max_length_k"] = max(lengths)
    if model.config._attn_implementation == NAME:
        # Transformers hands a mask of four dimensions through, and makes none of T x T then.
        told["attention_mask"] = torch.ones(1, 1, 1, 1, dtype=torch.bool, device=device)
    return told


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

    Its cost is the sum of the squares of the sequences' lengths. A GPU in half precision runs them
    by one kernel (torch's `varlen_attn`, flash attention 2); else each is attended to alone.

    Args:
        module: The layer.
        query: Shape [B, heads, T, D]; B is 1 in a packed row.
        key: Shape [B, heads of keys, T, D].
        value: Shape [B, heads of keys, T, D].
        attention_mask: Of unpacked rows.
        dropout: Of attention weights.
        scaling: Of scores; None takes 1 / sqrt(D).
        cu_seq_lens_q: Where sequences begin, and the last one's end; None in unpacked rows.
        max_length_q: Tokens of the longest sequence.
        **kwargs: What else transformers tells an attention.

    Returns:
        Attention's output, shape [B, T, heads, D], and no weights.
    """
    plain: dict[str, Any] = {"dropout": dropout, "scaling": scaling}
    if cu_seq_lens_q is None:
        out: tuple[torch.Tensor, None] = _sdpa(
            module, query, key, value, attention_mask, **plain, **kwargs
        )
        return out
    half = _half_precision(query)
    if half is not None and _varlen is not None and not dropout:
        rows = (x[0].transpose(0, 1).to(half) for x in (query, key, value))
        limits = (cu_seq_lens_q, cu_seq_lens_q, max_length_q, max_length_q)
        row = _varlen(*rows, *limits, scale=scaling, window_size=(-1, 0), enable_gqa=True)
        return row[None], None
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
    """Return the type in which a GPU's kernel for sequences of many lengths may run, or None."""
    if query.device.type != "cuda":
        return None
    autocast = torch.is_autocast_enabled("cuda")
    dtype = torch.get_autocast_dtype("cuda") if autocast else query.dtype
    return dtype if dtype in _HALVES else None


AttentionInterface.register(NAME, attend)
AttentionMaskInterface.register(NAME, sdpa_mask)
