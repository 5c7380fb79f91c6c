"""The precision of a model where no setting names one."""

from __future__ import annotations

from typing import Final

import torch

SMALLEST_MIXED: Final = 10_000_000
"""A CPU computes smaller models in float32: their time is overhead, not arithmetic."""


def usual_precision(device: str, parameters: int, processes: int = 1) -> str:
    """Return `"mixed"` or `"float32"` for a model of so many parameters.

    Mixed precision is usual on a GPU, and on a CPU with instructions for bfloat16 if one process
    has a model that is not tiny. `device` is torch's type of device.
    """
    if device == "cuda":
        return "mixed"
    is_large = parameters >= SMALLEST_MIXED
    alone = device == "cpu" and processes == 1
    return "mixed" if alone and is_large and has_bfloat16() else "float32"


def has_bfloat16() -> bool:
    """Return whether this CPU multiplies matrices in bfloat16 (`amx_bf16`, `avx512_bf16`)."""
    if hasattr(torch.cpu, "get_capabilities"):  # later versions of torch have it
        known = torch.cpu.get_capabilities()
        return bool(known.get("amx_bf16") or known.get("avx512_bf16"))
    supported = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
    return supported is not None and bool(supported())
