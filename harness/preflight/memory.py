"""The memory that a run needs on each device, and the disk space of its checkpoints.

Weights, gradients, AdamW's moments and activations are counted on transformers' own classes; how
long sequences get is an estimate.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

import torch

from harness.config import Config, replace
from harness.inference.vllm_generators import ENGINE_SHARE
from harness.model.output_layer import MOST_LOGITS
from harness.preflight.activations import kept_bytes
from harness.preflight.model_shapes import Shape, max_sequence_length, shape_of
from harness.preflight.resolve import annotator_settings, needs_reference
from harness.preflight.teacher_model import settings_of_teacher, shape_of_teacher
from harness.types.errors import ConfigError

Phase = Literal["always", "playing", "learning"]

_MOMENTS: Final = 2
"""Precision that AdamW keeps for each parameter."""

SCORER_PARAMETERS: Final = {"cross-encoder": 568_000_000, "embedding": 23_000_000}
"""Number of parameters of the semantic scorers' default models."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine that a run is planned for.

    Attributes:
        kind: `"cuda"` or `"cpu"`.
        processes: Number of processes that train together, one for each device.
        memory: Bytes of one device, or of the main memory; None if unknown.
    """

    kind: str
    processes: int = 1
    memory: int | None = None

    @classmethod
    def of(cls, config: Config, gpus: int | None = None, gpu_memory: int | None = None) -> Machine:
        """Return this machine, or a machine with `gpus` GPUs of `gpu_memory` bytes."""
        if gpu_memory is not None:
            return cls("cuda", gpus or int(os.environ.get("WORLD_SIZE", "1")), gpu_memory)
        here = torch.cuda.is_available()
        wanted = config.policy.device or ("cuda" if here or gpus else "cpu")
        if wanted == "cpu" and not gpus:
            return cls("cpu", int(os.environ.get("WORLD_SIZE", "1")), _main_memory())
        memory = torch.cuda.get_device_properties(0).total_memory if here else None
        return cls("cuda", gpus or int(os.environ.get("WORLD_SIZE", "1")), memory)


def _main_memory() -> int | None:
    if sys.platform == "win32":
        return None
    return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


@dataclass(frozen=True, slots=True)
class Allocation:
    """Memory that is allocated on one device.

    Attributes:
        name: What it is for.
        size: Bytes.
        when: `"always"`, or only while the run is `"playing"` or `"learning"`.
    """

    name: str
    size: float
    when: Phase = "always"


@dataclass(frozen=True, slots=True)
class Precision:
    """Precision of a run, in bytes of a number.

    Attributes:
        weight: Bytes of a weight.
        compute: Bytes of an activation.
    """

    weight: int
    compute: int

    @classmethod
    def of(cls, config: Config, machine: Machine) -> Precision:
        """Return the precision of a run on a machine."""
        default = "mixed" if machine.kind == "cuda" else "float32"
        return {"float32": cls(4, 4), "mixed": cls(4, 2), "bfloat16": cls(2, 2)}[
            config.policy.precision or default
        ]


def memory(config: Config, shape: Shape, machine: Machine) -> list[Allocation]:
    """Return the allocations of a resolved run on one device.

    Weights, gradients and moments of every model that learns are sharded over the processes.
    """
    precision = Precision.of(config, machine)
    share = min(config.policy.replicas, machine.processes) / machine.processes
    allocations = [*_learner("policy", config, shape, precision, share)]
    full = config.policy.lora.rank == 0
    if needs_reference(config) and (full or config.warmstart.episodes):
        allocations.append(
            Allocation("reference policy", shape.parameters * precision.weight * share)
        )
    for name, (own, on_policy) in trained_beside(config, shape).items():
        whole = config if on_policy else _without_adapters(config)
        allocations += _learner(
            name, whole, own, precision, share, on_policy=on_policy and not full
        )
    allocations += [
        Allocation(name, size * precision.compute)
        for name, size in scorer_parameters(config).items()
    ]
    allocations += _teacher(config, shape, machine, share)
    allocations += _forward_and_backward(config, shape, precision, machine)
    return [*allocations, *_generator(config, shape, precision, machine)]


def peak(allocations: list[Allocation]) -> float:
    """Return the largest number of bytes that are allocated at once."""
    return max(by_phase(allocations).values())


def by_phase(allocations: list[Allocation]) -> dict[Phase, float]:
    """Return the bytes that are allocated while the run plays, and while it learns."""
    phases: tuple[Phase, ...] = ("playing", "learning")
    return {
        phase: sum(a.size for a in allocations if a.when in ("always", phase)) for phase in phases
    }


def trained_beside(config: Config, shape: Shape) -> dict[str, tuple[Shape, bool]]:
    """Return the trained models beside the policy: sizes, and whether it is a copy of the policy.

    A model whose size is not known here counts like the policy.
    """
    found = {}
    for name, values in annotator_settings(config).items():
        if name == "critic" and values["model"] == "own":
            found["critic"] = (shape, True)
        elif name == "process_reward":
            own = values["model"]
            size = shape if own is None else _size_of(own, config, shape)
            found["process reward model"] = (size, own is None)
    return found


def _size_of(model: str, config: Config, other: Shape) -> Shape:
    try:
        return shape_of(replace(config.policy, model=model))
    except ConfigError:
        return other


def _without_adapters(config: Config) -> Config:
    lora = replace(config.policy.lora, rank=0)
    return replace(config, policy=replace(config.policy, lora=lora))


def scorer_parameters(config: Config) -> dict[str, int]:
    """Return the number of parameters of each semantic scorer that a run loads."""
    kinds = (str(config.method.credit.get(key)).partition(":")[0] for key in ("scorer", "match"))
    return {kind: SCORER_PARAMETERS[kind] for kind in kinds if kind in SCORER_PARAMETERS}


def _teacher(config: Config, shape: Shape, machine: Machine, share: float) -> Iterator[Allocation]:
    """Yield the weights of a teacher that is loaded beside the policy.

    One whose size is not known here counts like the policy.
    """
    settings = settings_of_teacher(config)
    if settings is None or settings.loaded is None:
        return
    precision = settings.precision or config.policy.precision
    own = replace(config, policy=replace(config.policy, precision=precision))
    size = shape_of_teacher(config) or shape
    yield Allocation("teacher", size.parameters * Precision.of(own, machine).weight * share)


def _learner(
    name: str,
    config: Config,
    shape: Shape,
    precision: Precision,
    share: float,
    *,
    on_policy: bool = False,
) -> Iterator[Allocation]:
    """Yield the allocations of a trained model; with `on_policy` it shares frozen weights.

    Adapters are always in float32.
    """
    lora, parameters = config.policy.lora, shape.parameters
    own = shape.adapter_parameters(lora) if lora.rank else 0
    learned, size = (own, 4) if lora.rank else (parameters, precision.weight)
    if lora.rank and not on_policy:
        yield Allocation(f"{name}: frozen weights", parameters * precision.weight * share)
    yield Allocation(f"{name}: {'adapters' if lora.rank else 'weights'}", learned * size * share)
    yield Allocation(f"{name}: gradients", learned * size * share)
    of_policy = name == "policy"
    moments = _moments(config, shape, learned) if of_policy else learned * _MOMENTS
    by = "Muon and AdamW" if of_policy and config.optimizer.name == "muon" else "AdamW"
    yield Allocation(f"{name}: {by}", moments * size * share)
    if of_policy and config.policy.ema is not None:
        yield Allocation("policy: average of the weights", learned * 4 * share)
        yield Allocation("policy: weights beside the average", learned * size * share, "playing")


def _moments(config: Config, shape: Shape, learned: float) -> float:
    """Return how many numbers the policy's optimizer keeps; Muon keeps one for a hidden weight."""
    if config.optimizer.name == "adamw":
        return learned * _MOMENTS
    if config.policy.lora.rank:
        return learned
    tied = json.loads(shape.text).get("tie_word_embeddings")
    return learned + shape.vocabulary * shape.hidden * (1 if tied else 2)


def _forward_and_backward(
    config: Config, shape: Shape, precision: Precision, machine: Machine
) -> Iterator[Allocation]:
    """Yield the allocations of forward and backward passes."""
    tokens = max_micro_batch_tokens(config, shape)
    try:
        name, kept = "activations", activation_bytes(config, shape, _of_layers(precision, machine))
    except Exception:  # code of an architecture that needs numbers, which fake tensors lack
        name, kept = "activations: cannot be counted for this architecture", 0.0
    yield Allocation(name, tokens * kept, "learning")
    logits = min(response_share(config, shape) * tokens * shape.vocabulary, MOST_LOGITS)
    yield Allocation(
        "logits", 4 * logits * 4, "learning"
    )  # logits, log-probabilities, two gradients
    if machine.processes > 1:
        yield Allocation("gathered layers", _gathered(config, shape, precision), "learning")
    elif precision.compute < precision.weight:
        yield Allocation("weights in bfloat16", shape.parameters * precision.compute, "learning")


def _of_layers(precision: Precision, machine: Machine) -> Precision:
    """Return the precision of layers: sharded ones are gathered in that of the arithmetic."""
    half = precision.compute if machine.processes > 1 else precision.weight
    return Precision(half, precision.compute)


def _gathered(config: Config, shape: Shape, precision: Precision) -> float:
    """Return the bytes of gathered weights: of two layers, or of the output layer alone.

    A trained layer has its gradient beside it, and what is sent of it, in the type of the sharded
    weights. The output layer is gathered in that type and adds the gradients of its chunks.
    """
    trains_all = config.policy.lora.rank == 0
    head = shape.vocabulary * shape.hidden
    tied = json.loads(shape.text).get("tie_word_embeddings")
    layer = (shape.parameters - head * (1 if tied else 2)) / max(1, shape.layers)
    of_layers = 2 * layer * precision.compute
    if trains_all:
        of_layers += layer * (precision.compute + precision.weight)
    return max(of_layers, head * precision.weight * (3 if trains_all else 1))


def max_micro_batch_tokens(config: Config, shape: Shape) -> int:
    """Return the maximum number of tokens of a forward pass, which has at least one sequence."""
    return max(config.optimizer.micro_batch_tokens, max_sequence_length(config, shape))


def response_share(config: Config, shape: Shape) -> float:
    """Return the largest share of response tokens in a sequence."""
    if config.agent.context != "window":
        return 0.5
    return min(1.0, config.agent.max_tokens / max_sequence_length(config, shape))


def activation_bytes(config: Config, shape: Shape, precision: Precision) -> float:
    """Return the bytes of activations that are kept of one token for the backward pass.

    With gradient checkpointing PyTorch keeps only the input of each layer, and all of one layer.
    Images count by their tokens in the language model.
    """
    layers, rest = kept_bytes(shape.text, precision.weight, precision.compute)
    if config.policy.gradient_checkpointing:
        return shape.layers * shape.hidden * precision.weight + max(layers) + rest
    return sum(layers) + rest


def _generator(
    config: Config, shape: Shape, precision: Precision, machine: Machine
) -> Iterator[Allocation]:
    """Yield the allocations of the generator."""
    rollout, weights = config.rollout, shape.parameters
    if rollout.backend == "hf":
        rounded = precision.compute < precision.weight
        if machine.processes > 1 or rounded:
            head = 2 * shape.vocabulary * shape.hidden if rounded else 0  # it stays in float32
            yield Allocation("generator: weights", weights * precision.compute + head)
        yield Allocation(
            "generator: keys and values", cache_size(config, shape, machine), "playing"
        )
    elif rollout.backend == "vllm":
        when: Phase = "playing" if rollout.sleep else "always"
        share = float(rollout.engine.get("gpu_memory_utilization", ENGINE_SHARE))
        if machine.kind == "cuda" and machine.memory:
            yield Allocation(f"vLLM: {share:.0%} of the GPU", share * machine.memory, when)
        else:
            yield Allocation("vLLM: weights", weights * precision.compute, when)
            yield Allocation("vLLM: keys and values", cache_size(config, shape, machine), when)


def cache_size(config: Config, shape: Shape, machine: Machine) -> float:
    """Return the bytes of the key-value cache for all live episodes at full length."""
    precision = Precision.of(config, machine)
    live = math.ceil(live_episodes(config) / machine.processes)
    own = config.rollout.backend == "hf"
    if own:
        live = min(live, config.rollout.max_batch)
    tokens = max_sequence_length(config, shape)
    return live * shape.cache_bytes(tokens, precision.compute, whole=own)


def live_episodes(config: Config) -> int:
    """Return the maximum number of episodes that run at once."""
    return min(config.rollout.max_live, config.rollout.tasks_per_step * config.rollout.group_size)


def checkpoint_bytes(config: Config, shape: Shape, precision: Precision) -> float:
    """Return the bytes of one checkpoint: weights and moments of every trained model."""
    lora = config.policy.lora
    learned = shape.adapter_parameters(lora) if lora.rank else shape.parameters
    size = 4 if lora.rank else precision.weight
    total = (learned + _moments(config, shape, learned)) * size
    if config.policy.ema is not None:
        total += learned * (size + 4)  # a model, and its exact state
    for own, on_policy in trained_beside(config, shape).values():
        adapted = lora.rank > 0 and on_policy
        learned = own.adapter_parameters(lora) if adapted else own.parameters
        total += learned * (4 if adapted else precision.weight) * (1 + _MOMENTS)
    return total


def main_memory(config: Config, shape: Shape, machine: Machine) -> tuple[float, float]:
    """Return the bytes of main memory of all processes while the model is read and is saved.

    Processes that share the weights read their own parts, but each the whole model if it gets
    adapters. The first process writes the checkpoint, and holds it whole if it was in parts.
    """
    precision = Precision.of(config, machine)
    whole = shape.parameters * precision.weight
    each = machine.processes if config.policy.lora.rank else 1
    saved = checkpoint_bytes(config, shape, precision) if machine.processes > 1 else 0.0
    return whole * each, saved


def kept_checkpoints(config: Config) -> int:
    """Return the maximum number of checkpoints on the disk, the one being written included."""
    return config.checkpoint.keep + config.checkpoint.keep_best + 1
