"""Compares cached decoding of left-padded rows with the model alone, before anything is played."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, cast

import torch

from harness.inference.completers.decoding import DecodeBatch
from harness.inference.completers.kept_batch import KeptBatch, kept_prefixes
from harness.inference.completers.kept_prefixes import KeptPrefixes
from harness.model import self_test
from harness.model.forward import Network, small_networks
from harness.model.packed_rows.attention import allow_packed
from harness.model.policy import Policy
from harness.types.errors import ConfigError

PATH: Final = "cached decoding with padding on the left"
KEPT: Final = "cached decoding of prompts whose beginnings are kept"

_CURE: Final = "take a model of another type"

_PROMPTS: Final = (3, 9, 5)
"""Tokens of each sequence that are read at once; the others are appended one by one."""
_STEPS: Final = 2
"""Tokens that are appended before the last sequence joins, and afterwards before one leaves."""


def check(network: Network, *, keeps: bool = False) -> None:
    """Compare cached decoding with the model alone, in half precision also as a miniature.

    With `keeps` the beginnings of prompts are kept. The network is not sharded, with its weights on
    its device. Raises `ConfigError` if they differ, or the model cannot decode.
    """
    small = [] if self_test.is_exact(network) else small_networks(network.model.config)
    for one in (*small, network):
        found, is_judged = partial(difference, one, keeps=keeps), one is network and bool(small)
        path, cure = (KEPT, "set rollout.cache_gb to 0") if keeps else (PATH, _CURE)
        self_test.compare(one, path, found, cure, judged=is_judged)


def checked_prefixes(policy: Policy, most_bytes: int | None) -> KeptPrefixes | None:
    """Return an empty memory of texts, once decoding with it was compared; see `kept_prefixes`.

    If decoding with it would differ, the result is None. With `most_bytes` given, a `ConfigError`
    is raised instead.
    """
    usual = policy.model.config._attn_implementation
    kept = kept_prefixes(policy, most_bytes)
    if kept is None or policy.decodes_kept:
        return kept
    try:
        check(policy, keeps=True)
    except ConfigError:
        policy.model.set_attn_implementation(usual)
        if most_bytes is not None:
            raise
        return None
    policy.decodes_kept = True
    return kept


@torch.no_grad()
def difference(network: Network, *, keeps: bool = False) -> float:
    """Return the largest difference of log-probabilities from those of the model alone, in nats.

    Two prompts of unequal length are read together, a third one joins them later, and the first
    sequence leaves. The network is in evaluation mode, with its weights on its device.
    """
    rows, wanted = self_test.sequences(network), self_test.wanted_logprobs(network)
    ends = list(_PROMPTS)
    found: list[torch.Tensor] = []
    expected: list[torch.Tensor] = []

    def take(batch: DecodeBatch[int], logits: torch.Tensor) -> None:
        distribution = self_test.distribution(network, logits)  # [live rows, V]
        chosen = [rows[i][ends[i]] for i in batch.rows]
        for i, one, token in zip(batch.rows, distribution, chosen, strict=True):
            found.append(one[token][None])
            expected.append(wanted[i][ends[i] - 1 : ends[i]])
            ends[i] += 1
        batch.append(chosen)

    make: Callable[[], DecodeBatch[int]] = partial(DecodeBatch, network)
    if keeps:
        allow_packed(network.model, shares=True)
        make = partial(KeptBatch, network, KeptPrefixes())
        for begun in (rows[0][: ends[0]], rows[1][: ends[1] - 2]):
            first = cast("KeptBatch[int]", make())
            first.prefill([0], [begun])
            first.keep_texts([begun])
    batch, joining = make(), make()
    take(batch, batch.prefill([0, 1], [rows[0][: ends[0]], rows[1][: ends[1]]]))
    for _ in range(_STEPS):
        take(batch, batch.decode())
    take(joining, joining.prefill([2], [rows[2][: ends[2]]]))
    batch.join(joining)
    take(batch, batch.decode())
    batch.keep([False, True, True])
    for _ in range(_STEPS):
        take(batch, batch.decode())
    return self_test.largest(found, expected)
