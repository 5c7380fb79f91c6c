"""Rollouts and advantages to token batches."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import torch

from harness.agent import CONTEXTS
from harness.credit.arguments import one_of
from harness.credit.table import Floats
from harness.errors import TableError
from harness.images import Image
from harness.rollout import Completion, Rollout, Turn

Credit = float | tuple[float, ...]
"""Of a sequence's own tokens: one number for all, or one for each."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One training sequence: a prompt, what follows it, and the credit of the policy's own tokens.

    What follows is a response, or in a transcript responses and what the environment said between
    them. L is the number of the policy's own tokens.

    Attributes:
        prompt_ids: Tokens before the first one that the policy generated.
        response_ids: All tokens after the prompt.
        old_logprobs: Of the policy's own tokens when they were generated. L values.
        advantage: Credit of the policy's own tokens: one number for all, or L numbers.
        images: Those the sequence shows, in order.
        turn: For each of `response_ids` the turn it was said in, counted from 0 in this sequence,
            and -1 where the environment said it; empty if the policy said all of it in one turn.
    """

    prompt_ids: tuple[int, ...]
    response_ids: tuple[int, ...]
    old_logprobs: tuple[float, ...]
    advantage: Credit
    images: tuple[Image, ...] = ()
    turn: tuple[int, ...] = ()

    @property
    def length(self) -> int:
        """Number of tokens."""
        return len(self.prompt_ids) + len(self.response_ids)

    @property
    def num_actions(self) -> int:
        """Number of the policy's own tokens: L."""
        return len(self.old_logprobs)


@dataclass(frozen=True, slots=True, eq=False)
class TokenBatch:
    """Sequences padded on the right to one length. B sequences, T tokens.

    Attributes:
        tokens: Shape [B, T], integers.
        action_mask: True at the policy's own tokens, which alone are trained. Shape [B, T].
        old_logprob: Of the action tokens when generated, else 0. Shape [B, T].
        advantage: Of the action tokens, else 0. Shape [B, T].
        turn: The turn of the sequence in which an action token was said, from 0, else -1. Shape
            [B, T], integers.
        reference_logprob: Under the reference policy, or None. Shape [B, T].
        images: Of each sequence, in order; the model's vision makes tensors of them.
        lengths: Tokens of each sequence without padding; empty if there is none.
    """

    tokens: torch.Tensor
    action_mask: torch.Tensor
    old_logprob: torch.Tensor
    advantage: torch.Tensor
    turn: torch.Tensor
    reference_logprob: torch.Tensor | None = None
    images: tuple[tuple[Image, ...], ...] = ()
    lengths: tuple[int, ...] = ()


def samples(
    rollouts: Sequence[Rollout], advantage: Floats | Sequence[Floats], context: str = "window"
) -> list[Sample]:
    """Return training sequences in the order of the turn table.

    In the context "window" each turn makes one. In "transcript" each rollout does, as long as every
    prompt goes on from the prompt and response before it, token for token; where one does not,
    because the chat was cut to fit, a new sequence starts.

    Args:
        rollouts: Those the table was built from, N turns together.
        advantage: Of each turn, shape [N]; or for each turn an array of its tokens' advantages.
        context: "window" or "transcript".

    Raises:
        TableError: Advantages and turns or tokens differ in number, an advantage is not finite, or
            a turn has no tokens.
        ConfigError: There is no such context.
    """
    one_of("context", context, CONTEXTS)
    credit = iter(_checked([turn for rollout in rollouts for turn in rollout.turns], advantage))
    packed: list[Sample] = []
    for rollout in rollouts:
        credit_of_turn = [next(credit) for _ in rollout.turns]
        if context == "window":
            packed += map(_alone, rollout.turns, credit_of_turn)
        else:
            packed += _transcripts(rollout.turns, credit_of_turn)
    return packed


def _checked(turns: Sequence[Turn], advantage: Floats | Sequence[Floats]) -> list[Credit]:
    """Return the advantage of each turn or of each of its tokens, in agreement with the turns."""
    for turn in turns:
        said = turn.completion
        if not said.prompt_ids or not len(said.response_ids) == len(said.logprobs) > 0:
            raise TableError(
                "a turn has no tokens with log-probabilities: its completer does not report them"
            )
    if len(advantage) != len(turns):
        raise TableError(f"there are {len(advantage)} advantages for {len(turns)} turns")
    if isinstance(advantage, np.ndarray) and advantage.ndim == 1 and advantage.dtype != object:
        _check_finite(advantage, "turn")
        return [float(value) for value in advantage]
    credit: list[Credit] = []
    for row, (turn, values) in enumerate(zip(turns, advantage, strict=True)):
        shape, expected = np.shape(values), (len(turn.completion.response_ids),)
        if shape != expected:
            raise TableError(f"the advantages of turn {row} have shape {shape}, not {expected}")
        _check_finite(np.asarray(values), f"turn {row}, token")
        credit.append(tuple(float(value) for value in values))
    return credit


def _check_finite(values: Floats, where: str) -> None:
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise TableError(
            f"the advantage of {where} {row} is {values[row]}, expected finite numbers"
        )


def _alone(turn: Turn, credit: Credit) -> Sample:
    said = turn.completion
    return Sample(said.prompt_ids, said.response_ids, said.logprobs, credit, said.images)


def _transcripts(turns: Sequence[Turn], credit_of_turn: Sequence[Credit]) -> Iterator[Sample]:
    """Yield the unbroken parts of one rollout's chat."""
    start = 0
    for end in range(1, len(turns) + 1):
        if end == len(turns) or not _goes_on(turns[end - 1].completion, turns[end].completion):
            yield _join(turns[start:end], credit_of_turn[start:end])
            start = end


def _goes_on(before: Completion, after: Completion) -> bool:
    said = before.prompt_ids + before.response_ids
    shown = before.images
    return after.prompt_ids[: len(said)] == said and after.images[: len(shown)] == shown


def _join(turns: Sequence[Turn], credit_of_turn: Sequence[Credit]) -> Sample:
    first, last = turns[0].completion, turns[-1].completion
    start = len(first.prompt_ids)
    following = (last.prompt_ids + last.response_ids)[start:]
    place = [-1] * len(following)
    advantage: list[float] = []
    for i, (turn, credit) in enumerate(zip(turns, credit_of_turn, strict=True)):
        begin, size = len(turn.completion.prompt_ids) - start, len(turn.completion.response_ids)
        place[begin : begin + size] = [i] * size
        advantage += credit if isinstance(credit, tuple) else (credit,) * size
    return Sample(
        first.prompt_ids,
        following,
        tuple(chain.from_iterable(turn.completion.logprobs for turn in turns)),
        tuple(advantage),
        last.images,
        tuple(place),
    )


def merge(rows: Sequence[Sample]) -> list[Sample]:
    """Return fewer samples with the same gradient, for a loss that is linear in the advantage.

    Samples with equal images, tokens, old log-probabilities (to 4 decimals, beyond which they
    differ by rounding) and advantages of equal signs become one, whose advantage is their sum.
    Those with advantage 0 are dropped. Means must be taken over the tokens and sequences of the
    original samples; `harness.losses.is_linear` says of which losses this holds.
    """
    merged: dict[tuple[object, ...], Sample] = {}
    for row in rows:
        if not _has_credit(row.advantage):
            continue
        old = tuple(round(value, 4) for value in row.old_logprobs)
        sign = _sign(row.advantage)
        key = (row.images, row.prompt_ids, row.response_ids, row.turn, old, sign)
        first = merged.get(key)
        merged[key] = replace(first, advantage=_add(first, row)) if first else row
    return list(merged.values())


def _has_credit(advantage: Credit) -> bool:
    return any(advantage) if isinstance(advantage, tuple) else bool(advantage)


def _sign(advantage: Credit) -> int | tuple[int, ...]:
    """Return -1, 0 or 1 for each number."""
    if isinstance(advantage, tuple):
        return tuple((a > 0) - (a < 0) for a in advantage)
    return (advantage > 0) - (advantage < 0)


def _add(first: Sample, second: Sample) -> Credit:
    a, b = first.advantage, second.advantage
    if isinstance(a, tuple) and isinstance(b, tuple):
        return tuple(x + y for x, y in zip(a, b, strict=True))
    assert not isinstance(a, tuple)  # merged samples have equal signs, so equal kinds
    assert not isinstance(b, tuple)
    return a + b


def micro_batches(
    rows: Sequence[Sample],
    max_tokens: int,
    pad_id: int,
    device: torch.device | str = "cpu",
    *,
    padding_free: bool = False,
) -> Iterator[TokenBatch]:
    """Yield the samples in batches of at most `max_tokens`; see `by_length`."""
    for part in by_length(rows, max_tokens, padding_free=padding_free):
        yield to_batch([rows[i] for i in part], pad_id, device)


def by_length(
    rows: Sequence[Sample], max_tokens: int, *, padding_free: bool = False
) -> Iterator[list[int]]:
    """Yield the indices of the samples of each micro-batch.

    A sequence that is longer alone still makes a batch of its own.

    Args:
        rows: The samples.
        max_tokens: Most tokens of a batch.
        padding_free: No padding passes through the model, so a batch may hold any lengths, and is
            filled up to the limit; else it holds similar lengths, and padding counts.
    """
    if padding_free:
        yield from _best_fit([row.length for row in rows], max_tokens)
        return
    order = sorted(range(len(rows)), key=lambda i: rows[i].length)
    while order:
        size = 1
        while size < len(order) and rows[order[size]].length * (size + 1) <= max_tokens:
            size += 1
        yield order[:size]
        order = order[size:]


def _best_fit(lengths: Sequence[int], capacity: int) -> list[list[int]]:
    """Return the indices of each bin: longest first, each where the least room is left over.

    Best fit decreasing needs at most 11/9 of the fewest bins possible, and 4 more (Johnson 1974).
    """
    bins: list[list[int]] = []
    room: list[tuple[int, int]] = []  # left over, and the bin's number; sorted
    for i in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        place = bisect_left(room, (lengths[i], -1))
        if place == len(room):
            bins.append([])
            left, number = max(capacity, lengths[i]), len(bins) - 1
        else:
            left, number = room.pop(place)
        bins[number].append(i)
        insort(room, (left - lengths[i], number))
    return bins


def without_weight(row: Sample) -> Sample:
    """Return a row that passes through the model and trains nothing, with the images of another."""
    return Sample(row.prompt_ids if row.images else row.prompt_ids[:1], (), (), 0.0, row.images)


def to_batch(rows: Sequence[Sample], pad_id: int, device: torch.device | str = "cpu") -> TokenBatch:
    """Return the samples as one batch, padded on the right."""
    shape = (len(rows), max(row.length for row in rows))
    tokens, turn = np.full(shape, pad_id, np.int64), np.full(shape, -1, np.int64)
    old_logprob, advantage = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    for i, row in enumerate(rows):
        start, end = len(row.prompt_ids), row.length
        tokens[i, :end] = row.prompt_ids + row.response_ids
        turn[i, start:end] = row.turn or 0
        action = turn[i] >= 0
        old_logprob[i, action] = row.old_logprobs
        advantage[i, action] = row.advantage
    return TokenBatch(
        tokens=torch.from_numpy(tokens).to(device),
        action_mask=torch.from_numpy(turn >= 0).to(device),
        old_logprob=torch.from_numpy(old_logprob).to(device),
        advantage=torch.from_numpy(advantage).to(device),
        turn=torch.from_numpy(turn).to(device),
        images=tuple(row.images for row in rows),
        lengths=tuple(row.length for row in rows),
    )
