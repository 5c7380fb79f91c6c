"""The memory that a run needs on each of its devices, and the disk that its checkpoints take.

Weights, gradients and AdamW's moments are counted to the byte; activations are an estimate.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

import torch

from harness.config import Config
from harness.output_layer import MOST_LOGITS
from harness.settings import annotator_settings, needs_reference
from harness.shapes import Shape

Phase = Literal["always", "playing", "learning"]

_MOMENTS: Final = 2
"""What AdamW keeps of each parameter, beside the parameter and its gradient."""

ENGINE_SHARE: Final = 0.4
"""Of a GPU's memory: what an engine of vLLM takes beside the policy unless it is told."""

SCORER_PARAMETERS: Final = {"cross-encoder": 568_000_000, "embedding": 23_000_000}
"""Of the semantic scorers' default models."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What a run is planned for.

    Attributes:
        kind: `"cuda"` or `"cpu"`.
        processes: That train together, one for each device.
        memory: Bytes of one device, or of the main memory; None if it is not known.
    """

    kind: str
    processes: int = 1
    memory: int | None = None

    @classmethod
    def of(cls, config: Config, gpus: int | None = None) -> Machine:
        """Return this machine, or so many GPUs."""
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
class Held:
    """Memory of one device.

    Attributes:
        name: What it holds.
        size: Bytes.
        when: `"always"`, or only while the run is `"playing"` or `"learning"`.
    """

    name: str
    size: float
    when: Phase = "always"


@dataclass(frozen=True, slots=True)
class Numbers:
    """How a run computes, in bytes of a number.

    Attributes:
        weight: Of the model's weights.
        work: Of arithmetic with them.
    """

    weight: int
    work: int

    @classmethod
    def of(cls, config: Config, machine: Machine) -> Numbers:
        """Return those of a run on a machine."""
        usual = "mixed" if machine.kind == "cuda" else "float32"
        return {"float32": cls(4, 4), "mixed": cls(4, 2), "bfloat16": cls(2, 2)}[
            config.policy.precision or usual
        ]


def memory(config: Config, shape: Shape, machine: Machine) -> list[Held]:
    """Return what a resolved run holds in the memory of one device.

    Weights, gradients and moments of every model that learns are shared out over the processes.
    """
    numbers, share = Numbers.of(config, machine), 1 / machine.processes
    held = [*_learner("policy", config, shape, numbers, share)]
    plain = config.policy.lora.rank == 0
    if needs_reference(config) and (plain or config.warmstart.episodes):
        held.append(Held("reference policy", shape.parameters() * numbers.weight * share))
    for name in copies(config):
        held += _learner(name, config, shape, numbers, share, on_policy=not plain)
    held += [Held(name, size * numbers.work) for name, size in scorers(config).items()]
    held += _working(config, shape, numbers, machine)
    return [*held, *_generator(config, shape, numbers, machine)]


def peak(held: list[Held]) -> float:
    """Return the most bytes that are held at once."""
    size = {phase: sum(h.size for h in held if h.when == phase) for phase in _PHASES}
    return size["always"] + max(size["playing"], size["learning"])


_PHASES: Final[tuple[Phase, ...]] = ("always", "playing", "learning")


def copies(config: Config) -> list[str]:
    """Return the names of models that learn beside the policy and have its size."""
    found = []
    for name, values in annotator_settings(config).items():
        if name == "critic" and values["model"] == "own":
            found.append("critic")
        elif name == "process_reward":
            found.append("process reward model")
    return found


def scorers(config: Config) -> dict[str, int]:
    """Return the parameters of the semantic scorers that a run loads, by their kind."""
    kinds = (str(config.method.credit.get(key)).partition(":")[0] for key in ("scorer", "match"))
    return {kind: SCORER_PARAMETERS[kind] for kind in kinds if kind in SCORER_PARAMETERS}


def _learner(
    name: str,
    config: Config,
    shape: Shape,
    numbers: Numbers,
    share: float,
    *,
    on_policy: bool = False,
) -> Iterator[Held]:
    """Yield what a model that learns holds; with `on_policy` its frozen weights are the policy's.

    Adapters are in float32 whatever the model is in.
    """
    lora, all_of_it = config.policy.lora, shape.parameters()
    own = shape.adapter_parameters(lora) if lora.rank else 0
    learned, size = (own, 4) if lora.rank else (all_of_it, numbers.weight)
    if lora.rank and not on_policy:
        yield Held(f"{name}: frozen weights", all_of_it * numbers.weight * share)
    yield Held(f"{name}: {'adapters' if lora.rank else 'weights'}", learned * size * share)
    yield Held(f"{name}: gradients", learned * size * share)
    yield Held(f"{name}: AdamW", learned * _MOMENTS * size * share)


def _working(config: Config, shape: Shape, numbers: Numbers, machine: Machine) -> Iterator[Held]:
    """Yield what forward and backward passes hold."""
    tokens = tokens_at_once(config, shape)
    yield Held("activations", tokens * activation_bytes(config, shape, numbers), "learning")
    logits = min(trained_share(config, shape) * tokens * shape.vocabulary, MOST_LOGITS)
    yield Held("logits", 4 * logits * 4, "learning")  # they, their logarithms, two gradients
    layer = shape.parameters() / max(1, shape.layers)
    if machine.processes > 1:  # the layer at work and the next one are whole on each device
        yield Held("gathered layers", 2 * layer * (numbers.weight + numbers.work), "learning")
    elif numbers.work < numbers.weight:
        yield Held("weights in bfloat16", shape.parameters() * numbers.work, "learning")


def longest(config: Config, shape: Shape) -> int:
    """Return the most tokens of a sequence."""
    return min(config.agent.max_context or shape.max_length, shape.max_length)


def tokens_at_once(config: Config, shape: Shape) -> int:
    """Return the most tokens of a forward pass: a sequence that is longer makes its own."""
    return max(config.optimizer.micro_batch_tokens, longest(config, shape))


def trained_share(config: Config, shape: Shape) -> float:
    """Return the largest share of a sequence's tokens that are the policy's own."""
    if config.agent.context == "transcript":
        return 0.5
    return min(1.0, config.agent.max_tokens / longest(config, shape))


def activation_bytes(config: Config, shape: Shape, numbers: Numbers) -> float:
    """Return the bytes that one token leaves behind for the backward pass.

    What PyTorch keeps of transformers' Qwen2 and Llama: norms in float32, queries, keys, values and
    what attention makes of them, four widths of the gated layer. With checkpointing only the input
    of each layer, and all of one.
    """
    h, f, q, k = shape.hidden, shape.feed_forward, shape.queries, shape.keys
    w, stream = numbers.work, numbers.weight
    norms, last = 2 * h * (4 + 4 + w), h * (4 + 4)
    attention = w * (2 * q + 2 * k) + 3 * q * (stream - w)
    layer = norms + attention + w * 4 * f
    if config.policy.gradient_checkpointing:
        return shape.layers * h * stream + layer + last
    return shape.layers * layer + last


def _generator(config: Config, shape: Shape, numbers: Numbers, machine: Machine) -> Iterator[Held]:
    """Yield what answers while the run is playing."""
    rollout, weights = config.rollout, shape.parameters()
    if rollout.backend == "hf":
        if machine.processes > 1:
            yield Held("generator: weights", weights * numbers.weight)
        yield Held("generator: keys and values", cache(config, shape, machine), "playing")
    elif rollout.backend == "vllm":
        when: Phase = "playing" if rollout.sleep else "always"
        share = float(rollout.engine.get("gpu_memory_utilization", ENGINE_SHARE))
        if machine.kind == "cuda" and machine.memory:
            yield Held(f"vLLM: {share:.0%} of the GPU", share * machine.memory, when)
        else:
            yield Held("vLLM: weights", weights * numbers.work, when)
            yield Held("vLLM: keys and values", cache(config, shape, machine), when)


def cache(config: Config, shape: Shape, machine: Machine) -> float:
    """Return the bytes of keys and values of all live episodes of a process at full length."""
    numbers = Numbers.of(config, machine)
    live = math.ceil(live_episodes(config) / machine.processes)
    if config.rollout.backend == "hf":
        live = min(live, config.rollout.max_batch)
    return live * longest(config, shape) * shape.cache_bytes(numbers.work)


def live_episodes(config: Config) -> int:
    """Return the most episodes that are under way at once."""
    return min(config.rollout.max_live, config.rollout.tasks_per_step * config.rollout.group_size)


def checkpoint_bytes(config: Config, shape: Shape, numbers: Numbers) -> float:
    """Return the bytes of one checkpoint: weights and moments of every model that learns."""
    lora = config.policy.lora
    learned = shape.adapter_parameters(lora) if lora.rank else shape.parameters()
    size = 4 if lora.rank else numbers.weight
    return (1 + len(copies(config))) * learned * size * (1 + _MOMENTS)


def kept_checkpoints(config: Config) -> int:
    """Return how many checkpoints lie on the disk at most, one that is being written included."""
    return config.checkpoint.keep + config.checkpoint.keep_best + 1
