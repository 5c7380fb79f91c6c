"""Compares a model's paths to log-probabilities before anything is played or trained.

A few random sequences pass through the model alone (`model(input_ids).logits`) and by each path:
padded batch, packed row, shared prefixes. A path that differs is not used, or the model is refused.
"""

from harness.model.self_test.paths import (
    PACKED,
    SHARED,
    TOLERANCE,
    check,
    check_path,
    compare,
    distribution,
    figures,
    is_exact,
    largest,
    sequences,
    trial,
    wanted_logprobs,
)

__all__ = [
    "PACKED",
    "SHARED",
    "TOLERANCE",
    "check",
    "check_path",
    "compare",
    "distribution",
    "figures",
    "is_exact",
    "largest",
    "sequences",
    "trial",
    "wanted_logprobs",
]
