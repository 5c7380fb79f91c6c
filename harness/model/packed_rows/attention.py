"""Attention over packed sequences: several sequences in one row, with no attention across them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Final

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from harness.model.learning_mode import drops_in_learning
from harness.model.packed_rows.cached_rows import CachedRows, attend_one, attends_one
from harness.model.packed_rows.prefix_tree import PrefixTree
from harness.model.packed_rows.split_row import RowSplit, grouped, heads_obstacle
from harness.model.packed_rows.varlen_kernel import VarlenKernel
from harness.model.vocabulary.own_head import base_name
from harness.types.errors import ConfigError

_varlen: Any = None  # torch has it from 2.10 on
with suppress(ImportError):
    from torch.nn.attention.varlen import varlen_attn as _varlen
_KERNEL: Final = VarlenKernel.of(_varlen)

NAME: Final = "packed_sdpa"
"""transformers' name of `attend`: torch's attention, extended to packed rows."""

_sdpa: Final[Any] = sdpa_attention_forward
_split: Final[Any] = torch.split  # torch has no types for it
_FLASH: Final = "flash_attention"
_HALVES: Final = (torch.float16, torch.bfloat16)
_CHUNK: Final = 256
"""Queries of one call with a mask, which computes the scores of later tokens, too."""


def packing_obstacle(model: Any) -> str | None:
    """Return the reason why a model's attention cannot take packed rows, None if it can."""
    return obstacle_of(str(model.config._attn_implementation), _layer_types(model))


def sharing_obstacle(model: Any) -> str | None:
    """Return the reason why sequences cannot share prefixes in a model, None if they can."""
    if getattr(model, "_is_stateful", False):
        return "it has recurrent layers"
    if not getattr(model, "_supports_attention_backend", True):
        return "its attention cannot be replaced"
    if drops_in_learning(model):
        return "its adapters have dropout, which differs from sequence to sequence"
    kind = str(model.config._attn_implementation)
    return obstacle_of(kind, _layer_types(model), shares=True)


def splitting_obstacle(model: Any, size: int) -> str | None:
    """Return the reason why processes cannot share a model's rows, None if they can."""
    kind, config = str(model.config._attn_implementation), model.config.get_text_config()
    if kind.startswith(_FLASH):
        return f"its attention is {kind!r}, and only sdpa supports it"
    reason = heads_obstacle(int(config.num_attention_heads), size)
    return obstacle_of(kind, _layer_types(model)) or reason


def _layer_types(model: Any) -> Iterable[str]:
    config = model.config.get_text_config()
    has_window = getattr(config, "sliding_window", None) is not None
    return getattr(config, "layer_types", None) or (("sliding_attention",) if has_window else ())


def obstacle_of(kind: str, layer_types: Iterable[str], *, shares: bool = False) -> str | None:
    """Return the reason why an attention cannot take packed rows, or shared prefixes; else None."""
    if kind == NAME or (kind.startswith(_FLASH) and not shares):
        return None
    others = "" if shares else " and flash attention"
    if kind != "sdpa":
        return f"its attention is {kind!r}, and only sdpa{others} supports it"
    layers = set(layer_types) - {"full_attention"}
    if layers:
        able = "which cannot share" if shares else "which only flash attention supports"
        return f"it has layers of {', '.join(sorted(layers))}, {able}"
    return None


def allow_packed(model: Any, *, shares: bool = False) -> None:
    """Let a model's attention take packed rows; raise `ConfigError` if it cannot.

    Torch's scaled dot product attention is replaced by `attend`, with the same result for rows of
    one sequence. `shares` means that the sequences of a row share prefixes.
    """
    obstacle = sharing_obstacle(model) if shares else packing_obstacle(model)
    if obstacle is not None:
        name = "shared" if shares else "packed"
        cure = "" if shares else ", or set policy.attention to 'sdpa' or 'flash_attention_2'"
        raise ConfigError(
            f"optimizer.packing {name!r} is not for this {model.config.model_type}: {obstacle}; "
            f"leave it out{cure}"
        )
    if model.config._attn_implementation == "sdpa":
        model.set_attn_implementation(NAME)


def is_fast(model: Any, device: torch.device, dtype: torch.dtype) -> bool:
    """Return whether a model's attention computes packed rows with one kernel."""
    if device.type != "cuda" or dtype not in _HALVES or packing_obstacle(model) is not None:
        return False
    return has_kernel(str(model.config._attn_implementation))


def has_kernel(kind: str, kernel: VarlenKernel | None = _KERNEL) -> bool:
    """Return whether a GPU has one kernel for packed rows, for an attention without obstacle."""
    return kind.startswith(_FLASH) or kernel is not None


def language_model(model: Any) -> Any:
    """Return the layers of a model without its output layer and, if it has one, vision model."""
    base = getattr(model, base_name(model))
    return getattr(base, "language_model", base)


_OF_IMAGES: Final = "deepstack_visual_embeds"
"""An argument of Qwen3-VL that has a row for each image token, in the order of the tokens."""


def packed_features(
    model: Any,  # a model prepared by `allow_packed`
    # Its arguments for B sequences padded on the right to T tokens: `input_ids` [B, T] or
    # `inputs_embeds` [B, T, H], and `position_ids` [..., B, T] if they are not 0, 1, 2...; what a
    # vision-language model wants beside them.
    given: dict[str, Any],
    lengths: Sequence[int],  # lengths of the sequences without padding; empty means T each
    # True at the A predicted tokens; none is a sequence's first. Shape [B, T].
    where: torch.Tensor,
    # The sequences as a tree: each node is computed once, from the nodes before it.
    tree: PrefixTree | None = None,
    # The processes that share the row; each returns the features of its own part.
    split: RowSplit | None = None,
) -> torch.Tensor:
    """Return the last layer's features that predict tokens, sequences packed. Shape [A, H]."""
    rows, width = where.shape
    sizes = list(lengths) or [width] * rows
    index = torch.arange(width, device=where.device)
    # [B, T]: the tokens that pass through the model, N in number
    real = index < torch.tensor(sizes, device=where.device)[:, None] if tree is None else tree.new
    position = given.get("position_ids", index.expand(rows, width))
    apart = {name: given[name] for name in (_OF_IMAGES,) if name in given}
    by_token = given.keys() - apart.keys() - {"position_ids"}
    row = {name: given[name][real][None] for name in by_token}  # [1, N, ...]
    row["position_ids"] = position[..., real].unsqueeze(-2)  # [..., 1, N]
    before = where.roll(-1, dims=1)[real]  # [N], whether the next token is to be predicted
    if split is not None:
        sizes += [more] if (more := split.padding(len(before))) else []
        row = {name: split.part(value) for name, value in row.items()}
        before = split.part(before[None])[0]
    # transformers passes unknown arguments on to `attend`.
    to_attend = {"split": split} if split is not None else {}
    boundaries = _boundaries(model, sizes, tree, where.device)
    out = language_model(model)(**row, **apart, **boundaries, **to_attend, use_cache=False)
    hidden: torch.Tensor = out.last_hidden_state
    if tree is not None:
        # A shared node may predict different tokens: its features are taken once for each.
        return hidden[0, tree.node[:, :-1][where[:, 1:]]]
    return hidden[0, before]


def _boundaries(
    model: Any, lengths: Sequence[int], tree: PrefixTree | None, device: torch.device
) -> dict[str, Any]:
    """Return the attention's arguments for the boundaries of the sequences in a row."""
    queries, keys = (lengths, lengths) if tree is None else (tree.added, tree.lengths)
    arguments: dict[str, Any] = {"paths": tree.paths} if tree is not None else {}
    for name, sizes in (("q", queries), ("k", keys)):
        ends = torch.tensor([0, *sizes], dtype=torch.int32).cumsum(0, dtype=torch.int32)
        arguments |= {f"cu_seq_lens_{name}": ends.to(device), f"max_length_{name}": max(sizes)}
    if model.config._attn_implementation == NAME:
        # transformers passes a mask of four dimensions on, instead of creating one of T x T.
        arguments["attention_mask"] = torch.ones(1, 1, 1, 1, dtype=torch.bool, device=device)
    return arguments


def attend(
    module: Any,
    query: torch.Tensor,  # shape [B, heads, T, D]; B is 1 in a packed row
    key: torch.Tensor,  # shape [B, heads of keys, T, D]
    value: torch.Tensor,  # shape [B, heads of keys, T, D]
    attention_mask: torch.Tensor | None,
    *,
    dropout: float = 0.0,
    scaling: float | None = None,  # factor of scores; None takes 1 / sqrt(D)
    # Starts of the sequences' queries, and the end of the last; None in unpacked rows.
    cu_seq_lens_q: torch.Tensor | None = None,
    cu_seq_lens_k: torch.Tensor | None = None,  # the same of their keys; left out where equal
    max_length_q: int = 0,
    max_length_k: int = 0,
    # Where the keys of the sequences are, one sequence behind the other; None if in order.
    paths: torch.Tensor | None = None,
    # The processes that share the row: T are this one's tokens, the starts the row's.
    split: RowSplit | None = None,
    # The rows whose new tokens are the queries: their keys are in the rows of a cache.
    cached_rows: CachedRows | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """Return scaled dot product attention, causal within each sequence of a packed row.

    Packed sequences may share their beginnings: then each has its own last tokens as queries, and
    the keys and values of all its tokens, which are looked up by `paths`. The cost is the sum of
    queries times keys over the sequences. A GPU in half precision uses one kernel (torch's
    `varlen_attn`, flash attention 2) where this torch has one that takes this scaling; otherwise
    sequences are computed one by one. Returns the output, [B, T, heads, D], and None for the
    weights, as transformers expects. Its further arguments are in `kwargs`.
    """
    plain: dict[str, Any] = {"dropout": dropout, "scaling": scaling}
    if cached_rows is not None:
        return cached_rows.attend(query, key, value, scaling), None
    if cu_seq_lens_q is None and attends_one(query, key):
        return attend_one(query, key, value, attention_mask, scaling), None
    if cu_seq_lens_q is None:
        out: tuple[torch.Tensor, None] = _sdpa(
            module, query, key, value, attention_mask, **plain, **kwargs
        )
        return out
    if split is not None:
        # Each process has its part of the tokens, and attends with its part of the heads.
        query, key, value = split.to_heads(query, key, value)
        module = grouped(query, key)
    ends_of_keys = cu_seq_lens_q if cu_seq_lens_k is None else cu_seq_lens_k
    if paths is not None:  # keys of a shared prefix are copied to each sequence
        key, value = (
            x.transpose(1, 2).index_select(1, paths).transpose(1, 2) for x in (key, value)
        )
    half = _half_precision(query)
    kernel = None if half is None or dropout else _KERNEL
    if half is not None and kernel is not None and paths is not None:
        kernel = kernel if kernel.aligns_last(query.device, half) else None
    if kernel is not None and kernel.takes(scaling, query.shape[-1]):
        q, k, v = (x[0].transpose(0, 1).to(half) for x in (query, key, value))  # [T, heads, D]
        ends, longest = (cu_seq_lens_q, ends_of_keys), (max_length_q, max_length_k)
        output = kernel.attend(q, k, v, ends, longest, scaling)[None]
        return output if split is None else split.to_tokens(output), None
    sizes = cu_seq_lens_q.diff().tolist(), ends_of_keys.diff().tolist()
    sequences = zip(
        _split(query, sizes[0], 2),
        _split(key, sizes[1], 2),
        _split(value, sizes[1], 2),
        strict=True,
    )
    output = torch.cat([_attend_last(module, *one, plain) for one in sequences], dim=1)
    return output if split is None else split.to_tokens(output), None


def _attend_last(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    plain: dict[str, Any],
) -> torch.Tensor:
    """Return causal attention of the last tokens of a sequence to all before them."""
    end = key.shape[2] - query.shape[2]  # tokens before the first query
    if not end:
        out: torch.Tensor = _sdpa(module, query, key, value, None, is_causal=True, **plain)[0]
        return out
    parts = []
    # torch's `is_causal` aligns queries with the first keys, not the last: masks, in chunks.
    for chunk in _split(query, _CHUNK, 2):
        start, end = end, end + chunk.shape[2]
        mask = torch.ones(chunk.shape[2], end, dtype=torch.bool, device=query.device).tril(start)
        seen = key[:, :, :end], value[:, :, :end]
        parts.append(_sdpa(module, chunk, *seen, mask[None, None], **plain)[0])
    return torch.cat(parts, dim=1)


def _half_precision(query: torch.Tensor) -> torch.dtype | None:
    """Return the type for the GPU's variable-length kernel; None if it cannot run."""
    if query.device.type != "cuda":
        return None
    autocast = torch.is_autocast_enabled("cuda")
    dtype = torch.get_autocast_dtype("cuda") if autocast else query.dtype
    return dtype if dtype in _HALVES else None


AttentionInterface.register(NAME, attend)
AttentionMaskInterface.register(NAME, sdpa_mask)
