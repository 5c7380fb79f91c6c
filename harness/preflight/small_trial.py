"""Compares a run's paths to log-probabilities on a small random model of the same class."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache

from harness.config import Config
from harness.inference.completers import decoding_check
from harness.model import self_test
from harness.model.forward import small_networks
from harness.preflight.model_shapes import Shape
from harness.types.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Tried:
    """The result of a trial, in words; `refused` is the reason why the run cannot start, if any."""

    line: str
    refused: tuple[str, ...] = ()


def try_paths(config: Config, shape: Shape) -> Tried:
    """Compare the paths that a resolved run takes with a small random model alone."""
    return _try(
        shape.text,
        config.rollout.backend == "hf",
        config.optimizer.packing == "packed" and config.policy.attention in (None, "sdpa"),
        config.optimizer.packing == "shared",
    )


@lru_cache(32)
def _try(text: str, decodes: bool, packs: bool, shares: bool) -> Tried:
    """Try padded batches and the other paths of a language model's configuration, as JSON."""
    from transformers import AutoConfig

    fields = json.loads(text)
    kind = fields["model_type"]
    networks = small_networks(AutoConfig.for_model(**fields))
    if not networks:
        return Tried(f"paths: no small {kind} can be made; they are compared when it is loaded")
    small, taken = networks[0], ["padded batch"]
    try:
        small.test()
        if decodes:
            decoding_check.check(small)
            taken.append("cached decoding")
        if packs:
            small.set_padding_free(True)
            taken.append(self_test.PACKED)
        if shares:
            small.set_share_prefixes(True)
            taken.append(self_test.SHARED)
    except ConfigError as e:
        return Tried(f"paths: a small random {kind} is refused", (str(e),))
    return Tried(f"paths: {', '.join(taken)} agree on a small random {kind}")
