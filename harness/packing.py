"""Rollouts and advantages to token batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from harness.credit.table import Floats
from harness.errors import TableError
from harness.images import Image
from harness.rollout import Rollout


@dataclass(frozen=True, slots=True)
class Sample:
    """One training sequence: a prompt, the response to it, and the response's credit.

    Attributes:
        prompt_ids: Tokens the policy saw.
        response_ids: Tokens it generated.
        old_logprobs: Their log-probabilities when they were generated.
        advantage: Credit of every response token.
        images: Those the prompt shows, in order.
    """

    prompt_ids: tuple[int, ...]
    response_ids: tuple[int, ...]
    old_logprobs: tuple[float, ...]
    advantage: float
    images: tuple[Image, ...] = ()

    @property
    def length(self) -> int:
        """Number of tokens."""
        return len(self.prompt_ids) + len(self.response_ids)


@dataclass(frozen=True, slots=True, eq=False)
class TokenBatch:
    """Sequences padded on the right to one length. B sequences, T tokens.

    Attributes:
        tokens: Shape [B, T], integers.
        action_mask: True at the response's tokens, which alone are trained. Shape [B, T].
        old_logprob: Of the action tokens when generated, else 0. Shape [B, T].
        advantage: Of the action tokens, else 0. Shape [B, T].
        reference_logprob: Under the reference policy, or None. Shape [B, T].
        images: Of each sequence's prompt, in order; the model's vision makes tensors of them.
    """

    tokens: torch.Tensor
    action_mask: torch.Tensor
    old_logprob: torch.Tensor
    advantage: torch.Tensor
    reference_logprob: torch.Tensor | None = None
    images: tuple[tuple[Image, ...], ...] = ()


def samples(rollouts: Sequence[Rollout], advantage: Floats) -> list[Sample]:
    """Return one sample for each turn, in the order of the turn table (window context).

    Args:
        rollouts: Those the table was built from.
        advantage: Of each turn. Shape [N].

    Raises:
        TableError: There are not as many advantages as turns, or a turn has no tokens.
    """
    turns = [turn for rollout in rollouts for turn in rollout.turns]
    if advantage.shape != (len(turns),):
        raise TableError(f"advantage has shape {advantage.shape}, expected ({len(turns)},)")
    packed = []
    for turn, credit in zip(turns, advantage.tolist(), strict=True):
        said = turn.completion
        if not said.prompt_ids or not said.response_ids:
            raise TableError("a turn has no tokens: its completer does not report them")
        packed.append(
            Sample(said.prompt_ids, said.response_ids, said.logprobs, credit, said.images)
        )
    return packed


def merge(rows: Sequence[Sample]) -> list[Sample]:
    """Return fewer samples with the same clipped policy gradient.

    Samples with equal images, tokens, old log-probabilities (to 4 decimals, beyond which they
    differ by rounding) and advantages of one sign become one, whose advantage is their sum: the
    clipped surrogate is linear in advantages of one sign. Those with advantage 0 are dropped.
    Token means must be taken over the tokens of the original samples, and penalties that do not
    scale with the advantage (KL, entropy) must be off.
    """
    merged: dict[tuple[object, ...], Sample] = {}
    for row in rows:
        if row.advantage == 0:
            continue
        old = tuple(round(value, 4) for value in row.old_logprobs)
        key = (row.images, row.prompt_ids, row.response_ids, old, row.advantage > 0)
        first = merged.get(key)
        total = row.advantage + (first.advantage if first else 0.0)
        merged[key] = replace(first or row, advantage=total)
    return list(merged.values())


def micro_batches(
    rows: Sequence[Sample], max_tokens: int, pad_id: int, device: torch.device | str = "cpu"
) -> Iterator[TokenBatch]:
    """Yield batches of similar length whose padded size is at most `max_tokens`.

    A sequence that is longer alone still makes a batch of its own.
    """
    by_length = sorted(rows, key=lambda row: row.length)
    while by_length:
        size = 1
        while size < len(by_length) and by_length[size].length * (size + 1) <= max_tokens:
            size += 1
        yield to_batch(by_length[:size], pad_id, device)
        by_length = by_length[size:]


def to_batch(rows: Sequence[Sample], pad_id: int, device: torch.device | str = "cpu") -> TokenBatch:
    """Return the samples as one batch, padded on the right."""
    shape = (len(rows), max(row.length for row in rows))
    tokens = np.full(shape, pad_id, np.int64)
    action = np.zeros(shape, np.bool_)
    old_logprob, advantage = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    for i, row in enumerate(rows):
        start, end = len(row.prompt_ids), row.length
        tokens[i, :end] = row.prompt_ids + row.response_ids
        action[i, start:end] = True
        old_logprob[i, start:end] = row.old_logprobs
        advantage[i, start:end] = row.advantage
    return TokenBatch(
        tokens=torch.from_numpy(tokens).to(device),
        action_mask=torch.from_numpy(action).to(device),
        old_logprob=torch.from_numpy(old_logprob).to(device),
        advantage=torch.from_numpy(advantage).to(device),
        images=tuple(row.images for row in rows),
    )
