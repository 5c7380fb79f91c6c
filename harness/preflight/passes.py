"""The memory of forward and backward passes on one device.

A weight's gradients exist from the first of several micro-batches on, so the second one takes most.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

from harness.config import Config, replace
from harness.model.packed_rows.attention import obstacle_of
from harness.model.vocabulary.output_layer import MOST_LOGITS
from harness.preflight.activations import NO_ADAPTERS, Activations, count
from harness.preflight.machine import Allocation, Machine, Precision, precision_name
from harness.preflight.model_shapes import Shape, max_sequence_length
from harness.preflight.shared_prefixes import tokens_left

_REDUCED = 4
"""Bytes of a number of a gradient while it is summed over the processes."""
_GRADIENTS = 1 / 3
"""Share of a layer's gradients that exist when most of its activations do."""
_LOGITS_OF_CHUNKS, _LOGITS_AT_ONCE = 2, 4
"""Number of live tensors of the logits' size, with several chunks and with one."""


def allocations(config: Config, shape: Shape, machine: Machine) -> Iterator[Allocation]:
    """Yield the allocations of forward and backward passes of a resolved run."""
    precision = Precision.of(config, machine, shape.parameters)
    tokens, sharded = tokens_of_pass(config, shape), machine.processes > 1
    try:
        found = activations(config, shape, precision, sharded=sharded)
    except Exception:  # code of an architecture that needs numbers, which fake tensors lack
        yield Allocation("activations: cannot be counted for this architecture", 0, "learning")
    else:
        kept = tokens * kept_bytes(config, shape, found)
        if config.policy.gradient_checkpointing:
            yield Allocation("activations of a layer", tokens * found.forward, "forward pass")
        yield Allocation("activations", kept, "learning")
        yield Allocation("activations behind the layers", tokens * found.rest, "output layer")
        yield Allocation(
            "activations of a layer, gradients", tokens * max(found.backward), "backward pass"
        )
        if _shares(config, shape, machine):
            yield _looked_up(config, shape, precision)
    yield from _logits(config, shape, precision)
    if sharded:
        yield from _gathered(config, shape, precision)
    else:
        yield from _alone(config, shape, precision)


def _shares(config: Config, shape: Shape, machine: Machine) -> bool:
    """Return whether sequences share prefixes; see `Network.set_share_prefixes`."""
    if config.optimizer.packing is not None or machine.kind != "cpu" or machine.processes > 1:
        return config.optimizer.packing == "shared"
    layers = json.loads(shape.text).get("layer_types") or ()
    able = obstacle_of(config.policy.attention or "sdpa", layers, shares=True) is None
    mixed = precision_name(config, machine, shape.parameters) == "mixed"
    return able and mixed and not config.policy.lora.dropout


def _looked_up(config: Config, shape: Shape, precision: Precision) -> Allocation:
    """Return the keys and values looked up for each sequence, beside those of shared tokens."""
    shared = replace(config, optimizer=replace(config.optimizer, packing="shared"))
    tokens = max_micro_batch_tokens(config, shape) / tokens_left(shared)
    layers = 1 if config.policy.gradient_checkpointing else shape.layers
    size = 2 * tokens * shape.keys * precision.compute * layers
    return Allocation("keys and values of each sequence", size, "backward pass")


def kept_bytes(config: Config, shape: Shape, found: Activations) -> float:
    """Return the bytes of one token's activations of layers between forward and backward pass."""
    if config.policy.gradient_checkpointing:
        return shape.layers * shape.hidden * found.stream
    return sum(found.layers)


def activations(
    config: Config, shape: Shape, precision: Precision, *, sharded: bool
) -> Activations:
    """Return one token's bytes of activations; sharded layers have the arithmetic's precision."""
    lora, rounded = config.policy.lora, precision.compute < precision.weight
    weight = precision.compute if sharded else precision.weight
    adapter = precision.compute if sharded and rounded else 4
    return count(
        shape.text,
        weight,
        precision.compute,
        lora if lora.rank else NO_ADAPTERS,
        adapter,
        again=config.policy.gradient_checkpointing,
    )


def _logits(config: Config, shape: Shape, precision: Precision) -> Iterator[Allocation]:
    """Yield logits and inputs of their layer; one process may have all scored tokens of a row."""
    tokens = tokens_of_pass(config, shape)
    scored = min(tokens, response_share(config, shape) * max_micro_batch_tokens(config, shape))
    logits = min(scored * shape.vocabulary, MOST_LOGITS)
    several = _LOGITS_OF_CHUNKS if logits == MOST_LOGITS else _LOGITS_AT_ONCE
    yield Allocation("logits", 4 * logits * several, "output layer")
    inputs = 2 * scored * precision.weight + tokens * precision.compute
    yield Allocation("inputs of the output layer", inputs * shape.hidden, "output layer")


def _gathered(config: Config, shape: Shape, precision: Precision) -> Iterator[Allocation]:
    """Yield gathered weights, their gradients, and gradients that are being summed.

    The output layer is gathered in the type of the sharded weights, and twice in its forward pass;
    a tied one stays. Most is gathered in the last layer's backward pass, where the output layer's
    gradient is still sent, or in the first one's, where the embedding comes next.
    """
    layer, head, is_tied = _sizes(shape)
    trains_all = config.policy.lora.rank == 0
    whole, half = head * precision.weight, precision.compute
    yield Allocation("gathered output layer", 2 * whole + layer * half, "output layer")
    last = layer * half
    first = 0.0 if is_tied else head * half
    layers = layer * half
    if is_tied:
        layers += whole * (2 if trains_all else 1)
    if trains_all:
        last += _REDUCED * max(layer, 0 if is_tied else head)
        first += _REDUCED * layer
        layers += layer * half * _GRADIENTS
    layers += max(last, first)
    yield Allocation("gathered layers, and gradients sent", layers, "backward pass")
    if config.policy.reduce_once:
        learned = shape.parameters if trains_all else shape.adapter_parameters(config.policy.lora)
        yield Allocation("gradients of all weights", _REDUCED * learned, "learning")


def _alone(config: Config, shape: Shape, precision: Precision) -> Iterator[Allocation]:
    """Yield autocast's copies of weights.

    Copies of trained weights stay until the end of the forward pass. If PyTorch keeps a layer's
    activations, its copies stay with them.
    """
    layer, _, _ = _sizes(shape)
    trains_all = config.policy.lora.rank == 0
    if precision.compute < precision.weight:
        every, name = shape.layers * layer * precision.compute, "weights in bfloat16"
        if not config.policy.gradient_checkpointing:
            yield Allocation(name, every, "learning")
            return
        yield Allocation(name, every if trains_all else 0, "forward pass")
        yield Allocation(name, layer * precision.compute, "backward pass")


def _sizes(shape: Shape) -> tuple[float, int, bool]:
    """Return the weights of a layer and of the output layer, and whether that is tied."""
    head = shape.vocabulary * shape.hidden
    is_tied = bool(json.loads(shape.text).get("tie_word_embeddings"))
    return (shape.parameters - head * (1 if is_tied else 2)) / max(1, shape.layers), head, is_tied


def tokens_of_pass(config: Config, shape: Shape) -> int:
    """Return the most tokens of a forward pass in one process."""
    return math.ceil(max_micro_batch_tokens(config, shape) / config.policy.sequence_parallel)


def max_micro_batch_tokens(config: Config, shape: Shape) -> int:
    """Return the maximum number of tokens of a micro-batch, which has at least one sequence."""
    return max(config.optimizer.micro_batch_tokens, max_sequence_length(config, shape))


def response_share(config: Config, shape: Shape) -> float:
    """Return the largest share of response tokens in a sequence."""
    if config.agent.context != "window":
        return 0.5
    return min(1.0, config.agent.answer_tokens / max_sequence_length(config, shape))
