"""Inference: completers generate tokens, and get the policy's weights after each update.

Takes messages and sampling settings; returns completions (`completers`). `generation` chooses the
generator of a training run, `weight_sync` gives it the weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgyms.core.imports import lazy_names

if TYPE_CHECKING:
    from harness.inference.completers import Completer, Sampling
    from harness.inference.completers.hf import HFCompleter
    from harness.inference.generation import Generator, make_generator

__all__ = ["Completer", "Generator", "HFCompleter", "Sampling", "make_generator"]

__getattr__ = lazy_names(
    __name__,
    {
        "harness.inference.completers": "Completer Sampling",
        "harness.inference.generation": "Generator make_generator",
        "harness.inference.completers.hf": "HFCompleter",
    },
)
