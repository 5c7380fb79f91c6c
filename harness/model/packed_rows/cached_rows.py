"""Attention of new tokens behind cached ones: the new tokens of all rows are one packed row.

Rows share the new tokens of equal beginnings. Keys and values of all tokens, cached and new, stand
in tensors of the rows, padded on the left. B rows, W columns, N new tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch.nn.functional import scaled_dot_product_attention

_CHUNK: Final = 256
"""Queries of one call with a mask, which computes the scores of later tokens, too."""


@dataclass(frozen=True, slots=True)
class RowQueries:
    """The new tokens of one row: its last ones, without those that the row before has, too."""

    row: int
    start: int  # of its first new token among all new tokens
    stop: int
    length: int  # tokens of the row


@dataclass(frozen=True, slots=True)
class CachedRows:
    """The rows that have new tokens."""

    queries: Sequence[RowQueries]

    def attend(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scaling: float | None
    ) -> torch.Tensor:
        """Return attention of new tokens, [1, N, heads, D]; keys are [B, heads of keys, W, D]."""
        parts = []
        for one in self.queries:
            begin = key.shape[2] - one.length
            k, v = (x[one.row : one.row + 1, :, begin:] for x in (key, value))
            for start in range(one.start, one.stop, _CHUNK):
                stop = min(start + _CHUNK, one.stop)
                seen = one.length - (one.stop - stop)
                q = query[:, :, start:stop]
                parts.append(_attend_last(q, k[:, :, :seen], v[:, :, :seen], scaling))
        return torch.cat(parts, dim=1)


def _attend_last(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scaling: float | None
) -> torch.Tensor:
    """Return causal attention of a row's last tokens; [1, heads, n, D] gives [1, n, heads, D]."""
    heads, size, width = query.shape[1:]
    groups = heads // key.shape[1]
    grouped = query.reshape(1, key.shape[1], groups * size, width)
    seen = torch.ones(size, key.shape[2], dtype=torch.bool, device=query.device)
    mask = seen.tril(key.shape[2] - size).repeat(groups, 1)
    out = scaled_dot_product_attention(grouped, key, value, attn_mask=mask, scale=scaling)
    return out.reshape(1, heads, size, -1).transpose(1, 2)  # values may have another width


def attends_one(query: torch.Tensor, key: torch.Tensor) -> bool:
    """Return whether `attend_one` computes this attention: of one token a row, on the CPU."""
    one = query.shape[2] == 1 and key.shape[2] > 1 and query.shape[1] > key.shape[1]
    rounded = query.dtype == torch.bfloat16 and query.device.type == "cpu"
    return one and rounded and not torch.is_grad_enabled()


def attend_one(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    scaling: float | None,
) -> torch.Tensor:
    """Return attention of each row's last token, [B, 1, heads, D]; shared keys are not copied."""
    rows, heads, _, width = query.shape
    grouped = query.reshape(rows, key.shape[1], heads // key.shape[1], width)
    out = scaled_dot_product_attention(grouped, key, value, attn_mask=mask, scale=scaling)
    return out.reshape(rows, 1, heads, -1)
