"""Floating-point operations of passes through a model, by arithmetic.

A product of matrices of sizes [a, b] and [b, c] is 2abc operations. Norms, activation functions and
the softmax are left out, as in the usual definition of the model FLOPs utilization (Chowdhery et
al. 2022, "PaLM", appendix B); attention counts as causal.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from harness.preflight.model_shapes import Shape

FORWARD = 1
BACKWARD = 2
"""A backward pass has two products for each one of the forward pass."""


@dataclass(frozen=True, slots=True)
class Passed:
    """Tokens that pass through a model."""

    tokens: float
    scored: float  # tokens with computed logits
    squares: float  # sum of squared lengths of the sequences


def forward_operations(shape: Shape, passed: Passed) -> float:
    """Return the operations of a forward pass."""
    layers = 2 * passed.tokens * active_weights(shape)
    head = 2 * passed.scored * shape.hidden * shape.vocabulary
    # Scores and weighted sum, 2 operations each, for half of the pairs.
    attention = 2 * passed.squares * _query_width(shape) * len(shape.windows)
    return layers + head + attention


def training_operations(shape: Shape, passed: Passed, *, adapted: bool = False) -> float:
    """Return the operations of forward and backward pass, without any that is repeated.

    Weights with adapters (`adapted`) are frozen: the backward pass leaves their gradients out.
    """
    backward = BACKWARD / 2 if adapted else BACKWARD
    return (FORWARD + backward) * forward_operations(shape, passed)


def active_weights(shape: Shape) -> int:
    """Return the weights of linear layers that a token of text is multiplied with.

    The output layer and a vision model are left out; only the chosen experts count.
    """
    text = json.loads(shape.text)
    linear = sum(inputs * outputs for name, inputs, outputs in shape.linear if "visual" not in name)
    chosen = text.get("num_experts_per_tok") or 0
    width = 3 * chosen * (text.get("moe_intermediate_size") or 0)  # a gated expert has three
    router = text.get("num_experts") or text.get("num_local_experts") or 0
    return int(linear + shape.layers * shape.hidden * (width + router))


def _query_width(shape: Shape) -> int:
    """Return the width of all queries of a layer."""
    text = json.loads(shape.text)
    heads = int(text["num_attention_heads"])
    return heads * int(text.get("head_dim") or shape.hidden // heads)
