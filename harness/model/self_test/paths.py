"""Log-probabilities of a model alone and by the paths of training. T tokens, V words."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import torch

from harness.model.packing import Sample, to_batch
from harness.model.vocabulary.output_layer import hide
from harness.types.errors import ConfigError

PADDED: Final = "padded batch"
PACKED: Final = "packed row"
SHARED: Final = "shared prefixes"

TOLERANCE: Final = {"float32": 1e-3, "mixed": 1.0, "bfloat16": 1.0}
"""Largest difference of a log-probability in nats, by precision.

Measured on the CPU: in float32 at most 3e-5 for 90 architectures of two layers with weights of
standard deviation 0.3, and 9e-5 for 135 million weights of 0.1 in 30 layers. In the two others 0.07
for these with 0.04, about as models begin, and up to 0.9 with 0.1 (`benchmarks/studies/self_test`).
Models with large activations have more, which float64 shows to be rounding.
So a model in mixed precision is compared in float32, and one with weights in bfloat16 as a
miniature in float32, if it has one. What is wrong differs by 0.3 nats and more, except in models
just begun.
"""

_LENGTHS: Final = (7, 18, 12)
_SHARED: Final = 4
"""Tokens that the first and the last sequence share at their beginning."""
_MOST: Final = 160
"""Characters of another library's error that a message repeats."""


def is_exact(network: Any) -> bool:
    """Return whether a model is compared in float32; flash attention computes in half precision."""
    return network.precision == "float32" or (
        network.precision == "mixed"
        and "flash" not in str(network.model.config._attn_implementation)
    )


def sequences(network: Any) -> list[tuple[int, ...]]:
    """Return random sequences of unequal length, the same each time, without special tokens."""
    tokenizer = getattr(network, "tokenizer", None)
    special = set() if tokenizer is None else set(tokenizer.added_tokens_decoder)
    size = int(network.model.get_input_embeddings().weight.shape[0])
    size = size if tokenizer is None else min(size, len(tokenizer))
    unused = special | {network.pad_id} | set(_hidden(network))
    usual = [i for i in range(size) if i not in unused]
    drawn = np.random.default_rng(0).choice(usual or range(size), (len(_LENGTHS), max(_LENGTHS)))
    drawn[-1, :_SHARED] = drawn[0, :_SHARED]
    return [tuple(row[:n].tolist()) for row, n in zip(drawn, _LENGTHS, strict=True)]


def check(network: Any, *, judged: bool = False) -> None:
    """Compare padded batches, which every model needs, with the model alone.

    Its weights are on its device, not sharded. Raises `ConfigError` if they differ, or the model
    cannot compute one of them.
    """

    def difference() -> float:
        return _difference(network, wanted_logprobs(network))

    compare(network, PADDED, difference, "take a model of another type", judged=judged)


def check_path(network: Any, path: str) -> None:
    """Compare packed rows (`PACKED`) or shared prefixes (`SHARED`) with the sequences one by one.

    `allow_packed` has prepared the model; all processes of a sharded one call this. Raises
    `ConfigError` if they differ, or the model cannot compute one of them.
    """

    def difference() -> float:
        alone = [_by_path(network, [row])[0] for row in sequences(network)]
        return _difference(network, alone, path)

    compare(network, path, difference, "set optimizer.packing to 'padded'")


def compare(
    network: Any, path: str, difference: Callable[[], float], cure: str, *, judged: bool = False
) -> None:
    """Refuse a model that gives other log-probabilities by a path than by itself.

    In mixed precision it is compared in float32, and where that differs in float64. A model
    `judged` in float32, as a miniature, needs only finite log-probabilities in half precision: a
    router that rounds to another expert moves a token by several nats. The `ConfigError` names the
    path and the `cure`, the user's way out.
    """
    own, exact = network.precision, is_exact(network) and network.processes.size == 1
    for precision in dict.fromkeys(("float32", own) if exact else (own,)):
        network.precision = precision
        try:
            compared = precision != "float32" and (exact or judged)
            most = math.inf if compared else TOLERANCE[precision]
            with trial(network, path):
                found = difference()
                if found > most and precision == "float32":
                    with _doubled(network.model):  # large activations lose that much
                        found = difference()
        finally:
            network.precision = own
        if found > most or math.isinf(found):
            raise ConfigError(
                f"{_named(network.model)} gives other log-probabilities by its {path} than by "
                f"itself: they differ by {found:.2g} nats, at most {most:g} in {precision}; {cure}"
            )


@contextmanager
def _doubled(model: Any) -> Iterator[None]:
    """Compute with weights in float64; in float32 they come back bit for bit."""
    model.double()
    try:
        yield
    finally:
        model.float()


def figures(network: Any) -> dict[str, float]:
    """Return the largest difference of each possible path from the model alone, in nats."""
    from harness.model.packed_rows.attention import allow_packed

    with trial(network, PADDED):
        alone = wanted_logprobs(network)
        found = {PADDED: _difference(network, alone)}
    for path in (PACKED, SHARED):
        kind = network.model.config._attn_implementation
        try:
            allow_packed(network.model, shares=path == SHARED)
            with trial(network, path):
                found[path] = _difference(network, alone, path)
        except ConfigError:
            continue
        finally:
            network.model.set_attn_implementation(kind)
    return found


@contextmanager
def trial(network: Any, path: str) -> Iterator[None]:
    """Evaluate a model and restore its mode and random numbers; errors become `ConfigError`."""
    model = network.model
    training = [module for module in model.modules() if module.training]
    devices = [network.device] if network.device.type == "cuda" else []
    model.eval()
    try:
        with torch.random.fork_rng(devices), torch.no_grad():
            yield
    except (ConfigError, MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as e:  # of an architecture that does not take this path, errors of any kind
        told = " ".join(str(e).split())[:_MOST]
        raise ConfigError(
            f"{_named(model)} cannot be used here: its {path} fails with {type(e).__name__}: "
            f"{told}; take a model of another type"
        ) from e
    finally:
        for module in training:
            module.training = True


def wanted_logprobs(network: Any) -> list[torch.Tensor]:
    """Return the log-probabilities of all tokens but the first of each sequence. Shapes [T - 1].

    They are those of transformers' own logits of a sequence alone; weights in float32 compute in
    float32, unless flash attention cannot.
    """
    found = []
    exact = is_exact(network)
    for row in sequences(network):
        tokens = torch.tensor([row], device=network.device)
        with torch.autocast(network.device.type, enabled=False) if exact else network.autocast():
            logits = network.model(input_ids=tokens, use_cache=False).logits[0, :-1]
        found.append(distribution(network, logits).gather(-1, tokens[0, 1:, None])[:, 0])
    return found


def distribution(network: Any, logits: torch.Tensor) -> torch.Tensor:
    """Return the log-probabilities of all tokens but those the network hides. Shape [..., V]."""
    shown = hide(logits.float().clone(), network.hidden_tokens)
    return torch.log_softmax(shown, dim=-1)


def _hidden(network: Any) -> list[int]:
    tokens = network.hidden_tokens
    return [] if tokens is None else list(tokens.tolist())


def largest(found: Sequence[torch.Tensor], wanted: Sequence[torch.Tensor]) -> float:
    """Return the largest difference of values; infinite if one is no number."""
    gaps = (torch.cat(list(found)) - torch.cat(list(wanted))).abs()
    return float(gaps.max()) if bool(gaps.isfinite().all()) else float("inf")


def _named(model: Any) -> str:
    name = str(getattr(model, "name_or_path", "") or type(model).__name__)
    return f"the model {name!r:.90} of type {model.config.model_type}"


def _difference(network: Any, wanted: Sequence[torch.Tensor], path: str = PADDED) -> float:
    return largest(_by_path(network, sequences(network), path), wanted)


def _by_path(
    network: Any, rows: Sequence[tuple[int, ...]], path: str = PADDED
) -> list[torch.Tensor]:
    """Return the log-probabilities of all tokens but the first of each sequence, by a path."""
    usual = network.padding_free, network.share_prefixes
    shares = path == SHARED
    made = [Sample(row[:1], row[1:], (0.0,) * (len(row) - 1), 0.0) for row in rows]
    if shares:
        made.sort(key=lambda one: one.prompt_ids + one.response_ids)
    network.padding_free, network.share_prefixes = path == PACKED, shares
    try:
        batch = to_batch(made, network.pad_id, network.device, share_prefixes=shares)
        logprob, _ = network.logprobs(batch)
    finally:
        network.padding_free, network.share_prefixes = usual
    found = {
        one.prompt_ids + one.response_ids: own[mask]
        for one, own, mask in zip(made, logprob, batch.action_mask, strict=True)
    }
    return [found[row] for row in rows]
