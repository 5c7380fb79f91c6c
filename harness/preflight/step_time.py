"""Seconds of a training step on GPUs, by arithmetic with assumptions that are named."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from harness.config import Config
from harness.inference.old_logprobs import recomputes
from harness.preflight import memory, passes
from harness.preflight.machine import Machine, Precision
from harness.preflight.model_shapes import Shape
from harness.preflight.operations import Passed, forward_operations, training_operations
from harness.preflight.resolve import needs_reference

MFU: Final = 0.4
"""Assumed share of the peak that forward and backward passes reach."""
OPERATIONS_PER_S: Final = 989e12
"""Of an H100 (SXM) in bfloat16, without sparsity; from its data sheet."""
BYTES_PER_S: Final = 3.35e12
"""Of its memory, from the same sheet."""


@dataclass(frozen=True, slots=True)
class StepTime:
    """Seconds of the parts of a step.

    Attributes:
        decode: Of rollouts, at least: the weights are read once for each token of an episode. 0 if
            nothing is played.
        rescore: Of the old log-probabilities; 0 if the sampler's are taken.
        reference: Of those of the reference policy.
        update: Of all forward and backward passes.
    """

    decode: float
    rescore: float
    reference: float
    update: float


def step_time(
    config: Config, shape: Shape, machine: Machine, rows: float, turns: float
) -> StepTime:
    """Return the seconds of a step.

    Rows have half of the longest length, responses half of their limit.

    Args:
        config: Resolved.
        shape: The policy's.
        machine: Its GPUs count as H100s.
        rows: Number of training sequences.
        turns: Of an episode.
    """
    length = passes.max_sequence_length(config, shape) / 2
    share = passes.response_share(config, shape)
    passed = Passed(rows * length, rows * length * share, rows * length**2)
    adapted = config.policy.lora.rank > 0
    forward = forward_operations(shape, passed)
    repeated = forward if config.policy.gradient_checkpointing else 0.0
    epochs = config.optimizer.epochs or 1
    per_s = MFU * OPERATIONS_PER_S * machine.processes
    episodes = config.rollout.tasks_per_step * config.rollout.group_size
    rounds = math.ceil(episodes / memory.live_episodes(config))
    tokens = turns * config.agent.max_tokens / 2 * rounds
    read = shape.parameters * Precision.of(config, machine).compute
    return StepTime(
        decode=config.rollout.is_live * tokens * read / BYTES_PER_S,
        rescore=recomputes(config) * forward / per_s,
        reference=needs_reference(config) * forward / per_s,
        update=epochs * (training_operations(shape, passed, adapted=adapted) + repeated) / per_s,
    )


def lines(time: StepTime, machine: Machine) -> Iterator[str]:
    """Yield the lines of a plan."""
    parts = {
        "old log-probabilities": time.rescore,
        "reference": time.reference,
        "update": time.update,
    }
    said = ", ".join(f"{name} {seconds:,.0f} s" for name, seconds in parts.items() if seconds)
    played = f"rollouts at least {time.decode:,.0f} s, environments not counted"
    yield f"{said}; {played if time.decode else 'nothing is played'}"
    yield (
        f"(arithmetic for {machine.processes} x H100: an assumed MFU of {MFU:.0%} of "
        f"{OPERATIONS_PER_S / 1e12:.0f} TFLOP/s, weights read at {BYTES_PER_S / 1e12:g} TB/s for "
        "each token)"
    )
