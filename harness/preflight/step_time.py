"""Seconds of a training step on GPUs, by arithmetic with assumptions that are named.

A product of matrices of sizes [a, b] and [b, c] is 2abc operations. Norms, activation functions and
the softmax are left out, as in the usual definition of the model FLOPs utilization (Chowdhery et
al. 2022, "PaLM", appendix B); attention counts as causal.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from harness.config import Config, replace
from harness.inference.old_logprobs import recomputes
from harness.preflight import memory, passes
from harness.preflight.defaults import needs_reference
from harness.preflight.machine import Machine, Precision
from harness.preflight.model_shapes import Shape, max_sequence_length
from harness.preflight.shared_prefixes import tokens_left
from harness.preflight.teacher_model import settings_of_teacher, shape_of_teacher

MFU: Final = 0.4
"""Assumed share of the peak that forward and backward passes reach."""
OPERATIONS_PER_S: Final = 989e12
"""The peak of an H100 (SXM) in bfloat16, without sparsity; from its data sheet."""
BYTES_PER_S: Final = 3.35e12
"""The bandwidth of its memory, from the same sheet."""

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
    text = json.loads(shape.text)
    heads = int(text["num_attention_heads"])
    queries = heads * int(text.get("head_dim") or shape.hidden // heads)  # their width in a layer
    attention = 2 * passed.squares * queries * len(shape.windows)
    return layers + head + attention


def training_operations(shape: Shape, passed: Passed, *, adapted: bool = False) -> float:
    """Return the operations of both passes; `adapted` weights are frozen and need no gradients."""
    backward = BACKWARD / 2 if adapted else BACKWARD
    return (FORWARD + backward) * forward_operations(shape, passed)


def active_weights(shape: Shape) -> int:
    """Return a text token's active weights in layers, without output layer and vision model."""
    text = json.loads(shape.text)
    linear = sum(inputs * outputs for name, inputs, outputs in shape.linear if "visual" not in name)
    chosen = text.get("num_experts_per_tok") or 0
    width = 3 * chosen * (text.get("moe_intermediate_size") or 0)  # a gated expert has three
    router = text.get("num_experts") or text.get("num_local_experts") or 0
    return int(linear + shape.layers * shape.hidden * (width + router))


@dataclass(frozen=True, slots=True)
class StepTime:
    """Seconds of the parts of a step."""

    decode: float  # at least: weights are read once for each token
    rescore: float  # old log-probabilities; 0 with the sampler's
    reference: float  # the reference policy's log-probabilities
    teacher: float  # a teacher's on these GPUs, and the policy's to compare; 0 without
    update: float  # all forward and backward passes


def transcript_tokens(config: Config, shape: Shape, turns: float) -> float:
    """Return the estimated tokens of an episode of a run with windows if it were one transcript.

    Each further turn adds an answer, half of its limit, and an observation of the same length.
    """
    first = max_sequence_length(config, shape) / 2
    return min(first + (turns - 1) * config.agent.answer_tokens, shape.max_length)


def transcript_update(config: Config, shape: Shape, machine: Machine, turns: float) -> float:
    """Return the seconds of the updates of a run with windows if it had transcripts."""
    length = transcript_tokens(config, shape, turns)
    config = replace(config, agent=replace(config.agent, context="transcript"))
    episodes = config.rollout.tasks_per_step * config.rollout.group_size
    return step_time(config, shape, machine, episodes, turns, length).update


def step_time(
    config: Config,
    shape: Shape,
    machine: Machine,
    rows: float,
    turns: float,
    length: float | None = None,
) -> StepTime:
    """Return the seconds of a step with `rows` training sequences on GPUs that count as H100s.

    Responses have half of their limit. `turns` are those of an episode. A row has `length` tokens,
    by default half of the longest length.
    """
    if length is None:
        length = max_sequence_length(config, shape) / 2
    share = passes.response_share(config, shape)
    left = tokens_left(config)
    passed = Passed(left * rows * length, rows * length * share, left * rows * length**2)
    adapted = config.policy.lora.rank > 0
    forward = forward_operations(shape, passed)
    repeated = forward if config.policy.gradient_checkpointing else 0.0
    epochs = config.optimizer.epochs or 1
    per_s = MFU * OPERATIONS_PER_S * machine.processes
    episodes = config.rollout.tasks_per_step * config.rollout.group_size
    rounds = math.ceil(episodes / memory.live_episodes(config))
    tokens = turns * config.agent.answer_tokens / 2 * rounds
    read = shape.parameters * Precision.of(config, machine, shape.parameters).compute
    return StepTime(
        decode=config.rollout.is_live * tokens * read / BYTES_PER_S,
        rescore=recomputes(config) * forward / per_s,
        reference=needs_reference(config) * forward / per_s,
        teacher=_teacher_operations(config, shape, passed) / per_s,
        update=epochs * (training_operations(shape, passed, adapted=adapted) + repeated) / per_s,
    )


def _teacher_operations(config: Config, shape: Shape, passed: Passed) -> float:
    """Return the operations of passes through a teacher and through the policy beside it."""
    settings = settings_of_teacher(config)
    if settings is None:
        return 0.0
    own = forward_operations(shape, passed)
    if settings.served is not None or settings.needs_reference:  # the reference counts already
        return own
    return own + forward_operations(shape_of_teacher(config) or shape, passed)


def lines(time: StepTime, machine: Machine) -> Iterator[str]:
    """Yield the lines of a plan."""
    parts = {
        "old log-probabilities": time.rescore,
        "reference": time.reference,
        "teacher": time.teacher,
        "update": time.update,
    }
    shown = ", ".join(f"{name} {seconds:,.0f} s" for name, seconds in parts.items() if seconds)
    played = f"rollouts at least {time.decode:,.0f} s, environments not counted"
    yield f"{shown}; {played if time.decode else 'nothing is played'}"
    yield (
        f"(arithmetic for {machine.processes} x H100: an assumed MFU of {MFU:.0%} of "
        f"{OPERATIONS_PER_S / 1e12:.0f} TFLOP/s, weights read at {BYTES_PER_S / 1e12:g} TB/s for "
        "each token)"
    )
