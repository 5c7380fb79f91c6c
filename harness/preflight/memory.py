"""The memory of a run on each device and the disk of its checkpoints; lengths are estimates."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Final

from harness.config import Config, replace
from harness.distributed.shared_writing import FILE_BYTES
from harness.inference.completers.kept_prefixes import DEFAULT_BYTES
from harness.inference.vllm_generators import ENGINE_SHARE
from harness.model.weights.usual_precision import SMALLEST_MIXED
from harness.preflight import passes
from harness.preflight.defaults import annotator_settings, needs_reference
from harness.preflight.machine import PASSES, Allocation, Machine, Phase, Precision
from harness.preflight.model_shapes import Shape, max_sequence_length, shape_of
from harness.preflight.teacher_model import settings_of_teacher, shape_of_teacher
from harness.types.errors import ConfigError

_POLICY: Final = "policy"
_MOMENTS: Final = 2
"""Precision that AdamW keeps for each parameter."""

SCORER_PARAMETERS: Final = {"cross-encoder": 568_000_000, "embedding": 23_000_000}
"""Number of parameters of the semantic scorers' default models."""


def memory(config: Config, shape: Shape, machine: Machine) -> list[Allocation]:
    """Return the allocations of a resolved run on one device."""
    precision = Precision.of(config, machine, shape.parameters)
    models = _models(config, shape, machine)
    on_cpu = machine.kind == "cpu"  # what is offloaded stays in the same memory
    allocations = [one for one in models if on_cpu or not _is_offloaded(config, one)]
    allocations += [
        Allocation(name, size * precision.compute)
        for name, size in scorer_parameters(config).items()
    ]
    allocations += passes.allocations(config, shape, machine)
    return [*allocations, *_generator(config, shape, precision, machine)]


def offloaded(config: Config, shape: Shape, machine: Machine) -> float:
    """Return the bytes of main memory that all processes hold instead of their devices."""
    models = _models(config, shape, machine)
    return machine.processes * sum(one.size for one in models if _is_offloaded(config, one))


def _is_offloaded(config: Config, held: Allocation) -> bool:
    offload = config.policy.offload
    return offload == "parameters" or (offload == "optimizer" and held.name == f"{_POLICY}: AdamW")


def _models(config: Config, shape: Shape, machine: Machine) -> list[Allocation]:
    """Return a process's allocations for models; those that learn are sharded over processes."""
    precision = Precision.of(config, machine, shape.parameters)
    share = min(config.policy.replicas, machine.processes) / machine.processes
    allocations = [*_learner(_POLICY, config, shape, precision, share)]
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
    allocations += _teacher(config, shape, machine, share)
    return allocations


def peak(allocations: list[Allocation]) -> float:
    """Return the largest number of bytes that are allocated at once."""
    return max(by_phase(allocations).values())


def by_phase(allocations: list[Allocation]) -> dict[Phase, float]:
    """Return the most bytes that are allocated while the run plays, and while it learns."""
    return {
        "playing": during(allocations, "playing"),
        "learning": max(during(allocations, phase) for phase in PASSES),
    }


def during(allocations: list[Allocation], phase: Phase) -> float:
    """Return the bytes that are allocated in a phase, other than the general "learning"."""
    when = ("always", phase, *(("learning",) if phase in PASSES else ()))
    return sum(one.size for one in allocations if one.when in when)


def trained_beside(config: Config, shape: Shape) -> dict[str, tuple[Shape, bool]]:
    """Return the trained models beside the policy: sizes, and whether it is a copy of the policy.

    A model of unknown size counts like the policy.
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
    """Yield the weights of a teacher beside the policy; an unknown size counts like the policy."""
    settings = settings_of_teacher(config)
    if settings is None or settings.loaded is None:
        return
    precision = settings.precision or config.policy.precision
    own = replace(config, policy=replace(config.policy, precision=precision))
    size = shape_of_teacher(config) or shape
    precise = Precision.of(own, machine, size.parameters)
    yield Allocation("teacher", size.parameters * precise.weight * share)


def _learner(
    name: str,
    config: Config,
    shape: Shape,
    precision: Precision,
    share: float,
    *,
    on_policy: bool = False,
) -> Iterator[Allocation]:
    """Yield the allocations of a trained model; with `on_policy` it shares frozen weights."""
    lora, parameters = config.policy.lora, shape.parameters
    own = shape.adapter_parameters(lora) if lora.rank else 0
    learned, size = (own, 4) if lora.rank else (parameters, precision.weight)
    if lora.rank and not on_policy:
        yield Allocation(f"{name}: frozen weights", parameters * precision.weight * share)
    yield Allocation(f"{name}: {'adapters' if lora.rank else 'weights'}", learned * size * share)
    is_policy = name == _POLICY
    yield Allocation(
        f"{name}: gradients", learned * size * share, "learning" if is_policy else "always"
    )
    moments = _moments(config, shape, learned) if is_policy else learned * _MOMENTS
    by = "Muon and AdamW" if is_policy and config.optimizer.name == "muon" else "AdamW"
    yield Allocation(f"{name}: {by}", moments * size * share)
    if is_policy and config.policy.ema is not None:
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


def _generator(
    config: Config, shape: Shape, precision: Precision, machine: Machine
) -> Iterator[Allocation]:
    rollout, weights = config.rollout, shape.parameters
    if rollout.backend == "hf":
        rounded = precision.compute < precision.weight
        if machine.processes > 1 or rounded or rollout.ahead:
            head = 2 * shape.vocabulary * shape.hidden if rounded else 0  # it stays in float32
            yield Allocation("generator: weights", weights * precision.compute + head)
            if rounded and machine.kind == "cpu":
                packed = weights * precision.compute  # see `harness.model.weights.packed_linear`
                yield Allocation("generator: packed weights", packed)
        live = cache_size(config, shape, machine, most_at_once(config))
        yield Allocation("generator: keys and values", live, "playing")
        is_kept = precision.compute == 2 or weights >= SMALLEST_MIXED  # as in `kept_batch`
        usual = DEFAULT_BYTES if machine.kind == "cpu" and is_kept else 0
        kept = usual if rollout.cache_gb is None else 1e9 * rollout.cache_gb
        if kept and not rollout.ahead:
            yield Allocation("generator: kept keys and values", kept, "playing")
    elif rollout.backend == "vllm":
        when: Phase = "playing" if rollout.sleep else "always"
        share = float(rollout.engine.get("gpu_memory_utilization", ENGINE_SHARE))
        if machine.kind == "cuda" and machine.memory:
            yield Allocation(f"vLLM: {share:.0%} of the GPU", share * machine.memory, when)
        else:
            yield Allocation("vLLM: weights", weights * precision.compute, when)
            size = cache_size(config, shape, machine, live_episodes(config))
            yield Allocation("vLLM: keys and values", size, when)


def cache_size(config: Config, shape: Shape, machine: Machine, episodes: int) -> float:
    """Return the bytes of the key-value cache for `episodes` of all processes at full length."""
    precision = Precision.of(config, machine, shape.parameters)
    live = math.ceil(episodes / machine.processes)
    own = config.rollout.backend == "hf"
    if own:
        live = min(live, config.rollout.max_batch)
    tokens = max_sequence_length(config, shape)
    return live * shape.cache_bytes(tokens, precision.compute, whole=own)


def live_episodes(config: Config) -> int:
    """Return the maximum number of episodes of a step that run at once."""
    return min(config.rollout.max_live, config.rollout.tasks_per_step * config.rollout.group_size)


def most_at_once(config: Config) -> int:
    """Return the maximum number of episodes that run at once, in a step or in an evaluation."""
    own, most = config.eval, config.rollout.max_live
    splits = {str(own.split), *own.final_splits}
    evaluated = max(own.count(split, final=True) or most for split in splits)
    return max(live_episodes(config), min(most, evaluated))


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
    """Return the bytes of main memory of all processes while the model is read and is saved."""
    precision = Precision.of(config, machine, shape.parameters)
    whole = shape.parameters * precision.weight
    each = machine.processes if config.policy.lora.rank else 1
    if machine.processes == 1:
        return whole * each, 0.0
    files = float(machine.processes * FILE_BYTES)
    return whole * each, min(checkpoint_bytes(config, shape, precision), files)


def kept_checkpoints(config: Config) -> int:
    """Return the maximum number of checkpoints on the disk, the one being written included."""
    return config.checkpoint.keep + config.checkpoint.keep_best + 1
