"""The policy's model: takes token ids, returns log-probabilities, entropies and features.

`policy` is the model with its tokenizer, `packing` makes batches of rollouts, `packed_rows` puts
them into one row, `chat_template` and `tokenizer` encode messages, `vision` encodes images,
`adapters` has the low-rank adapters (LoRA), `weights` reads, checks and saves weights, `self_test`
compares the paths to log-probabilities with the model alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgyms.core.imports import lazy_names

if TYPE_CHECKING:
    from harness.model.packing import Sample, TokenBatch, samples
    from harness.model.policy import Policy

__all__ = ["Policy", "Sample", "TokenBatch", "samples"]

__getattr__ = lazy_names(
    __name__,
    {"harness.model.policy": "Policy", "harness.model.packing": "Sample TokenBatch samples"},
)
