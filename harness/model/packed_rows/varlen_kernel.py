"""Torch's attention over sequences of different lengths, as its versions have it.

`torch.nn.attention.varlen.varlen_attn` of torch 2.10 takes `is_causal` and no scale, that of 2.11
`window_size` and `scale`; from 2.12 on `enable_gqa` lets several heads share keys.
"""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import torch

_GIVEN: Final = ("query", "key", "value", "cu_seq_q", "cu_seq_k", "max_q", "max_k")


@dataclass(frozen=True, slots=True)
class VarlenKernel:
    """Causal attention over packed sequences by one kernel of a GPU, in half precision."""

    function: Any  # torch's `varlen_attn`
    names: frozenset[str]

    @classmethod
    def of(cls, function: Any) -> VarlenKernel | None:
        """Return the kernel; None if there is none, or if its arguments are not known here."""
        if function is None:
            return None
        taken = inspect.signature(function).parameters
        needed = {name for name, one in taken.items() if one.default is inspect.Parameter.empty}
        is_known = tuple(taken)[: len(_GIVEN)] == _GIVEN and needed == set(_GIVEN)
        return cls(function, frozenset(taken)) if is_known and _CAUSAL & taken.keys() else None

    def takes(self, scaling: float | None, width: int) -> bool:
        """Return whether scores of heads of a width can be scaled by this factor."""
        usual = scaling is None or math.isclose(scaling, width**-0.5)
        return usual or "scale" in self.names

    def aligns_last(self, device: torch.device, dtype: torch.dtype) -> bool:
        """Return whether fewer queries than keys are the last tokens, not the first; tried once."""
        return _aligns_last(self, device, dtype)

    def attend(
        self,
        query: torch.Tensor,  # shape [T, heads, D]
        key: torch.Tensor,  # shape [S, heads of keys, D]
        value: torch.Tensor,  # shape [S, heads of keys, D]
        # Starts of the sequences' queries, and the end of the last, and the same of their keys.
        # Integers of 32 bits.
        ends: tuple[torch.Tensor, torch.Tensor],
        longest: tuple[int, int],  # most queries and most keys of a sequence
        scaling: float | None,  # factor of scores that it `takes`; None is 1 / sqrt(D)
    ) -> torch.Tensor:
        """Return causal attention within each sequence. Shape [T, heads, D].

        A sequence may have fewer queries than keys: they are its last tokens.
        """
        chosen: dict[str, Any] = {"is_causal": True}
        if "window_size" in self.names:
            chosen = {"window_size": (-1, 0)}
        if "scale" in self.names:
            chosen["scale"] = scaling
        if "enable_gqa" in self.names:
            chosen["enable_gqa"] = True
        else:
            times = query.shape[1] // key.shape[1]
            key, value = (x.repeat_interleave(times, dim=1) for x in (key, value))
        out: torch.Tensor = self.function(query, key, value, *ends, *longest, **chosen)
        return out


@cache
@torch.no_grad()
def _aligns_last(kernel: VarlenKernel, device: torch.device, dtype: torch.dtype) -> bool:
    """Return whether one query of two keys attends to both: equally, as all scores are 0."""
    query, key = (torch.zeros(size, 1, 16, device=device, dtype=dtype) for size in (1, 2))
    ends = torch.tensor([[0, 1], [0, 2]], device=device, dtype=torch.int32)
    value = key + torch.tensor([0.0, 2.0], device=device, dtype=dtype)[:, None, None]
    out = kernel.attend(query, key, value, (ends[0], ends[1]), (1, 2), None)
    return bool(torch.allclose(out, torch.ones_like(out)))


_CAUSAL: Final = {"is_causal", "window_size"}
"""An argument that makes attention causal; without one the kernel is of no use here."""
