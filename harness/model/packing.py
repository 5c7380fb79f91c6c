"""Rollouts and advantages to token batches."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat

import numpy as np
import torch

from harness.config import CONTEXTS, OptimizerConfig
from harness.model.packed_rows.prefix_tree import PrefixTree, Tokens, batches_of_trees
from harness.types.arrays import Floats
from harness.types.errors import TableError
from harness.types.hyperparameters import one_of
from harness.types.messages import Image
from harness.types.rollout import Completion, Rollout, Turn

Credit = float | tuple[float, ...]
"""Advantage of a sequence's action tokens: one number for all, or one for each."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One training sequence: a prompt, the tokens after it, and the advantages of action tokens.

    After the prompt comes a response, or in a transcript responses with observations between them.
    Action tokens are those that the policy generated; L is their number.
    """

    prompt_ids: tuple[int, ...]
    response_ids: tuple[int, ...]
    # Log-probabilities of the action tokens at generation. L values.
    old_logprobs: tuple[float, ...]
    advantage: Credit  # advantage of the action tokens: one number for all, or L numbers
    images: tuple[Image, ...] = ()
    # Turn of each of `response_ids`, counted from 0 in this sequence, and -1 for tokens that the
    # policy did not sample; empty if all are action tokens of one turn.
    turn: tuple[int, ...] = ()

    @property
    def length(self) -> int:
        """Number of tokens."""
        return len(self.prompt_ids) + len(self.response_ids)

    @property
    def tokens(self) -> Tokens:
        """All tokens."""
        return np.array(self.prompt_ids + self.response_ids, np.int64)

    @property
    def num_actions(self) -> int:
        """Number of action tokens: L."""
        return len(self.old_logprobs)


@dataclass(frozen=True, slots=True, eq=False)
class TokenBatch:
    """Sequences padded on the right to one length. B sequences, T tokens."""

    tokens: torch.Tensor  # shape [B, T], integers
    action_mask: torch.Tensor  # True at action tokens; only these are trained. Shape [B, T].
    # Log-probability of action tokens at generation, else 0. Shape [B, T].
    old_logprob: torch.Tensor
    advantage: torch.Tensor  # advantage of action tokens, else 0. Shape [B, T].
    # Turn of each action token in its sequence, from 0, else -1. Shape [B, T], integers.
    turn: torch.Tensor
    # Log-probability under the reference policy, or None. Shape [B, T].
    reference_logprob: torch.Tensor | None = None
    # Images of each sequence, in order; the model's `Vision` makes tensors of them.
    images: tuple[tuple[Image, ...], ...] = ()
    # Tokens of each sequence without padding; empty if there is no padding.
    lengths: tuple[int, ...] = ()
    # The sequences as a tree, whose nodes pass through the model; None passes them one by one.
    tree: PrefixTree | None = None

    @property
    def num_tokens(self) -> int:
        """Number of tokens that pass through the model, padding left out."""
        if self.tree is not None:
            return self.tree.num_nodes
        return sum(self.lengths) if self.lengths else self.tokens.numel()


def samples(
    rollouts: Sequence[Rollout],
    advantage: Floats | Sequence[Floats],
    context: str = "window",
    *,
    shared: bool = True,
    kept: Sequence[bool] | None = None,
) -> list[Sample]:
    """Return training sequences in the order of the turn table.

    In the context "window" each turn is a sequence. In "transcript" each rollout is one. Where a
    prompt does not start with the tokens before it, because the chat was truncated or a thought
    left out, a new one starts. In "summary" one starts after each summary, which ends the sequence
    before and has the advantage of its turn.

    Args:
        rollouts: The rollouts of the table, with N turns in total.
        advantage: The advantage of each turn, shape [N]; or for each turn an array of its tokens'.
        context: "window", "transcript" or "summary".
        shared: Include the turns that a sibling shares with the rollout it branched from. An
            update leaves them out: they are context there, and the parent's are trained.
        kept: Whether each answer of the turns is trained, in their order: the others are context.
            None trains all.

    Raises:
        TableError: Advantages and turns or tokens differ in number, an advantage is not finite, or
            a turn has no tokens.
        ConfigError: There is no such context.
    """
    one_of("context", context, CONTEXTS)
    credit = iter(
        _credit_of_turns([turn for rollout in rollouts for turn in rollout.turns], advantage)
    )
    trained = repeat(True) if kept is None else iter(kept)
    packed: list[Sample] = []
    for rollout in rollouts:
        first = 0 if shared else rollout.branch_turn
        # Every turn takes from both iterators, so the cut to `first` comes after them.
        turns = [
            [(one, own if next(trained) else None) for one, own in _answers(turn, next(credit))]
            for turn in rollout.turns
        ]
        answers = list(chain.from_iterable(turns[first:]))
        if context == "window":
            packed += [single_turn(one, own) for one, own in answers if own is not None]
        else:
            packed += [row for row in transcripts(answers) if row.num_actions]
    return packed


def _credit_of_turns(turns: Sequence[Turn], advantage: Floats | Sequence[Floats]) -> list[Credit]:
    """Return the advantage of each turn or of its tokens, after checks against the turns."""
    for completion in (answer for turn in turns for answer in turn.answers):
        num_tokens, num_logprobs = completion.num_sampled, len(completion.logprobs)
        if not completion.prompt_ids or not num_tokens == num_logprobs > 0:
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
        shape, expected = np.shape(values), (turn.num_sampled,)
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


def _answers(turn: Turn, credit: Credit) -> Iterator[tuple[Completion, Credit]]:
    """Yield the answers of a turn, each with its advantage or those of its tokens."""
    start = 0
    for answer in turn.answers:
        end = start + answer.num_sampled
        yield answer, credit[start:end] if isinstance(credit, tuple) else credit
        start = end


def single_turn(one: Completion, credit: Credit) -> Sample:
    """Return the training sequence of one answer to its prompt."""
    turn = _turns_of_tokens(one, 0) if one.num_sampled < len(one.response_ids) else ()
    return Sample(one.prompt_ids, one.response_ids, one.logprobs, credit, one.images, turn)


def _turns_of_tokens(completion: Completion, turn: int) -> tuple[int, ...]:
    """Return the turn of each token of a response, -1 where the policy did not sample it."""
    start, end = completion.inserted
    size = len(completion.response_ids)
    return tuple(-1 if start <= i < end else turn for i in range(size))


def transcripts(answers: Sequence[tuple[Completion, Credit | None]]) -> Iterator[Sample]:
    """Yield a sequence for each unbroken part of a chat, whose answers have their advantages."""
    start = 0
    for end in range(1, len(answers) + 1):
        if end == len(answers) or not _continues(answers[end - 1][0], answers[end][0]):
            yield _merge_turns(answers[start:end])
            start = end


def _continues(before: Completion, after: Completion) -> bool:
    tokens, images = before.prompt_ids + before.response_ids, before.images
    return after.prompt_ids[: len(tokens)] == tokens and after.images[: len(images)] == images


def _merge_turns(answers: Sequence[tuple[Completion, Credit | None]]) -> Sample:
    """Return the sequence of answers; those without an advantage are context."""
    first, last = answers[0][0], answers[-1][0]
    start = len(first.prompt_ids)
    # The last prompt has all earlier prompts and answers, token by token.
    following = (last.prompt_ids + last.response_ids)[start:]
    turn_of_token = [-1] * len(following)
    advantage: list[float] = []
    logprobs: list[float] = []
    for i, (one, credit) in enumerate(answers):
        if credit is None:
            continue
        logprobs += one.logprobs
        begin = len(one.prompt_ids) - start
        turn_of_token[begin : begin + len(one.response_ids)] = _turns_of_tokens(one, i)
        advantage += credit if isinstance(credit, tuple) else (credit,) * one.num_sampled
    return Sample(
        first.prompt_ids,
        following,
        tuple(logprobs),
        tuple(advantage),
        last.images,
        tuple(turn_of_token),
    )


def merge(rows: Sequence[Sample]) -> list[Sample]:
    """Return fewer samples with the same gradient, for a loss that is linear in the advantage.

    Samples with equal images, tokens, old log-probabilities (to 4 decimals) and signs of advantages
    become one, with the sum of advantages; those with advantage 0 are dropped. Means must be taken
    over the original samples. `harness.losses.is_linear` tells which losses allow this.
    """
    merged: dict[tuple[object, ...], Sample] = {}
    for row in rows:
        if not _has_credit(row.advantage):
            continue
        # Equal samples of two batch sizes differ in the last bits of their log-probabilities.
        old = tuple(round(value, 4) for value in row.old_logprobs)
        sign = _sign(row.advantage)
        key = (row.images, row.prompt_ids, row.response_ids, row.turn, old, sign)
        first = merged.get(key)
        merged[key] = replace(first, advantage=_add(first, row)) if first else row
    return list(merged.values())


def _has_credit(advantage: Credit) -> bool:
    return any(advantage) if isinstance(advantage, tuple) else bool(advantage)


def _sign(advantage: Credit) -> int | tuple[int, ...]:
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


def num_mini_batches(config: OptimizerConfig, sequences: int) -> int:
    """Return the number of mini-batches, one optimizer step each, of a pass over the sequences."""
    size = config.mini_batch_size
    return min(config.mini_batches, sequences) if size is None else math.ceil(sequences / size)


def micro_batches(
    rows: Sequence[Sample],
    max_tokens: int,
    pad_id: int,
    device: torch.device | str = "cpu",
    *,
    padding_free: bool = False,
) -> Iterator[TokenBatch]:
    """Yield the samples in batches of at most `max_tokens`; see `micro_batch_indices`."""
    for part in micro_batch_indices(rows, max_tokens, padding_free=padding_free):
        yield to_batch([rows[i] for i in part], pad_id, device)


def micro_batch_indices(
    rows: Sequence[Sample],
    max_tokens: int,
    *,
    # Sequences are packed, so a batch mixes lengths up to the limit; otherwise it has similar
    # lengths, and padding counts.
    padding_free: bool = False,
    # Equal prefixes of a batch count once, so a batch has sequences that begin alike.
    share_prefixes: bool = False,
) -> Iterator[list[int]]:
    """Yield the indices of each micro-batch; a sequence longer than `max_tokens` has its own."""
    if share_prefixes:
        yield from batches_of_trees([row.tokens for row in rows], max_tokens)
        return
    if padding_free:
        yield from _best_fit([row.length for row in rows], max_tokens)
        return
    order = sorted(range(len(rows)), key=lambda i: rows[i].length)
    # From short to long: the next row is the batch's longest, which sets the width of all.
    while order:
        size = 1
        while size < len(order) and rows[order[size]].length * (size + 1) <= max_tokens:
            size += 1
        yield order[:size]
        order = order[size:]


def _best_fit(lengths: Sequence[int], capacity: int) -> list[list[int]]:
    """Return the indices of each bin: longest first, each into the fullest bin that has room.

    Best fit decreasing needs at most 11/9 of the fewest bins possible, and 4 more (Johnson 1974).
    """
    bins: list[list[int]] = []
    room: list[tuple[int, int]] = []  # left over, and the bin's number; sorted
    for i in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        index = bisect_left(room, (lengths[i], -1))
        if index == len(room):
            bins.append([])
            left, number = max(capacity, lengths[i]), len(bins) - 1  # a long one fills its bin
        else:
            left, number = room.pop(index)
        bins[number].append(i)
        insort(room, (left - lengths[i], number))
    return bins


def padding_sample(row: Sample) -> Sample:
    """Return a sample without action tokens, with the images of `row`: its gradient is zero."""
    return Sample(row.prompt_ids if row.images else row.prompt_ids[:1], (), (), 0.0, row.images)


def to_batch(
    rows: Sequence[Sample],
    pad_id: int,
    device: torch.device | str = "cpu",
    *,
    share_prefixes: bool = False,
) -> TokenBatch:
    """Return the samples as one batch, padded on the right, with their tree if they share it."""
    shape = (len(rows), max(row.length for row in rows))  # [B, T]
    tokens, turn = np.full(shape, pad_id, np.int64), np.full(shape, -1, np.int64)
    old_logprob, advantage = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    for i, row in enumerate(rows):
        start, end = len(row.prompt_ids), row.length
        tokens[i, :end] = row.prompt_ids + row.response_ids
        turn[i, start:end] = row.turn or 0
        action = turn[i] >= 0  # [T]; padding and tokens that the policy did not sample are -1
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
        tree=PrefixTree.of([row.tokens for row in rows], device) if share_prefixes else None,
    )
