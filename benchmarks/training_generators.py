"""The completer beside transformers' own generators."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import torch
from training_rates import CONCURRENT, Call, Clock, Rate, afresh

from harness.inference.completers.hf import HFCompleter
from harness.model.policy import Policy


def generators(calls: Sequence[Call], policy: Policy, rounds: int) -> dict[str, list[Rate]]:
    """Return the rates of three ways to generate from the same prompts, at most 64 at once."""
    made: dict[str, list[Rate]] = {}
    for _ in range(rounds):
        for name, generate in (
            ("HFCompleter", _own),
            ("transformers' generate", _static),
            ("transformers' generate_batch", _continuous),
        ):
            policy.model.eval()
            clock = Clock()
            made.setdefault(name, []).append(clock.rate(generate(calls, policy)))
    return made


def _own(calls: Sequence[Call], policy: Policy) -> int:
    completer, queue, count = HFCompleter(afresh(policy)), iter(calls), 0

    async def ask() -> None:
        nonlocal count
        for call in queue:
            completion = await completer.complete(call.messages, call.sampling, call.seed)
            count += len(completion.response_ids)

    async def everything() -> None:
        await asyncio.gather(*(ask() for _ in range(CONCURRENT)))

    asyncio.run(everything())
    return count


def _static(calls: Sequence[Call], policy: Policy) -> int:
    """Return the number of tokens, those after the end of a response not counted."""
    count = 0
    for first in range(0, len(calls), CONCURRENT):
        part = calls[first : first + CONCURRENT]
        prompts = [call.completion.prompt_ids for call in part]
        width = max(map(len, prompts))
        ids = torch.tensor([[policy.pad_id] * (width - len(p)) + list(p) for p in prompts])
        mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts])
        out = policy.model.generate(
            ids, attention_mask=mask, do_sample=True, max_new_tokens=part[0].sampling.max_tokens
        )
        for row in out[:, width:].tolist():
            end = next((i for i, token in enumerate(row) if token in policy.stop_ids), len(row) - 1)
            count += end + 1
    return count


def _continuous(calls: Sequence[Call], policy: Policy) -> int:
    from transformers import ContinuousBatchingConfig, GenerationConfig

    settings = GenerationConfig(
        max_new_tokens=calls[0].sampling.max_tokens,
        do_sample=True,
        eos_token_id=sorted(policy.stop_ids),
        pad_token_id=policy.pad_id,
    )
    out = policy.model.generate_batch(
        [list(call.completion.prompt_ids) for call in calls],
        generation_config=settings,
        continuous_batching_config=ContinuousBatchingConfig(max_requests_per_batch=CONCURRENT),
    )
    return sum(len(one.generated_tokens) for one in out.values())
