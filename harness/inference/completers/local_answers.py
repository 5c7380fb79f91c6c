"""Answers of local policies: requests, completions, and generation that closes long thoughts.

A thought at `Sampling.max_thought_tokens` is closed with tokens that the policy does not sample.
They belong to the answer and later prompts, have no log-probability and are not trained.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from harness.inference.completers import Sampling
from harness.inference.completers.next_tokens import Point
from harness.model.tokenizer import ChatTokenizer, ThoughtLimit, find_thought
from harness.types.errors import ContextOverflow, ModelUnavailable
from harness.types.messages import Image
from harness.types.rollout import Completion, Usage
from harness.types.task_draws import seed_of


@dataclass(frozen=True, slots=True)
class GeneratedTokens:
    """Tokens of an answer, or of a part of it."""

    ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()  # log-probability of each sampled token, in nats
    finished: bool = False
    inserted: tuple[int, int] = (0, 0)  # start and end, in `ids`, of tokens that were not sampled


async def generate_in_parts(
    chat_tokenizer: ChatTokenizer,
    prompt_ids: tuple[int, ...],
    sampling: Sampling,
    seed: int,  # of the first request; those of the others derive from it
    # Makes a request: tokens of a prompt, sampling and seed.
    generate: Callable[[tuple[int, ...], Sampling, int], Awaitable[GeneratedTokens]],
) -> GeneratedTokens:
    """Return an answer; raise `ModelUnavailable` if the tokenizer lacks a token for closing."""
    limit = ThoughtLimit(chat_tokenizer, sampling.max_thought_tokens)
    made, room, requests = GeneratedTokens(), limit.room(()), 0
    while not made.finished and len(made.ids) < sampling.max_tokens:
        left = sampling.max_tokens - len(made.ids)
        if room == 0:
            start, added = len(made.ids), limit.closing[:left]
            end = start + len(added)
            made, room = replace(made, ids=made.ids + added, inserted=(start, end)), None
            continue
        size = left if room is None else min(room, left)
        own_seed = seed_of(seed, requests) if requests else seed
        own = replace(sampling, max_tokens=size)
        part = await generate(prompt_ids + made.ids, own, own_seed)
        made = replace(
            made,
            ids=made.ids + part.ids,
            logprobs=made.logprobs + part.logprobs,
            finished=part.finished,
        )
        room, requests = None if room is None else limit.room(made.ids), requests + 1
    unknown = chat_tokenizer.first_unknown(made.ids)
    if unknown is not None:
        raise ModelUnavailable(
            f"vLLM generated the id {unknown}, which the tokenizer does not have: rows that "
            "only fill up the output layer get probability, and training leaves them out; if that "
            "is no rare event, use the backend 'hf', which leaves them out, too, or a model that "
            "was trained with this tokenizer"
        )
    return made


def completion_of(
    chat_tokenizer: ChatTokenizer,
    prompt_ids: tuple[int, ...],
    made: GeneratedTokens,
    images: Sequence[Image] = (),
) -> Completion:
    """Return the completion of a prompt and the tokens that were generated."""
    thought = find_thought(chat_tokenizer, made.ids)
    end = min(thought.end, made.inserted[0] or thought.end) if thought else 0
    return Completion(
        text=chat_tokenizer.decode_answer(made.ids),
        prompt_ids=prompt_ids,
        response_ids=made.ids,
        logprobs=made.logprobs,
        finished=made.finished,
        images=tuple(images),
        usage=Usage(len(prompt_ids), len(made.ids), 1),
        inserted=made.inserted,
        thought_tokens=end - thought.begin if thought else 0,
    )


@dataclass(slots=True, eq=False)
class Request:
    """One response being generated."""

    prompt_ids: tuple[int, ...]
    images: tuple[Image, ...]
    sampling: Sampling
    uniforms: np.ndarray[tuple[int], np.dtype[np.float64]]
    done: asyncio.Future[Completion]
    limit: ThoughtLimit
    check_at: int | None = None  # number of tokens at which the limit is asked again; None: never
    response_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    forced: list[int] = field(default_factory=list)  # tokens that come next and are not sampled
    inserted: tuple[int, int] = (0, 0)  # start and end of such tokens in `response_ids`
    is_repeated: bool = False  # equal prompts that join the batch with it are read once
    # Where it has come to, among requests that share what the model says; None if it shares
    # nothing.
    point: Point[Request] | None = None

    @property
    def tokens(self) -> tuple[int, ...]:
        """Prompt and answer so far."""
        return (*self.prompt_ids, *self.response_ids)

    def add(self, token: int, logprob: float) -> int:
        """Add the sampled token, or the next forced one in its place, and return it."""
        if self.forced:
            token, size = self.forced.pop(0), len(self.response_ids)
            self.inserted = (self.inserted[0] or size, size + 1)
        else:
            self.logprobs.append(logprob)
        self.response_ids.append(token)
        if len(self.response_ids) == self.check_at:
            room = self.limit.room(self.response_ids)
            self.check_at = len(self.response_ids) + room if room else None
            if room == 0:
                self.forced = list(self.limit.closing)
        return token


def check_length(prompt_ids: Sequence[int], sampling: Sampling, limit: int) -> None:
    """Raise `ContextOverflow` if prompt and longest response have more than `limit` tokens."""
    if len(prompt_ids) + sampling.max_tokens > limit:
        raise ContextOverflow(
            f"a prompt of {len(prompt_ids)} tokens and {sampling.max_tokens} for the response "
            f"exceed the limit of {limit}: shorten the prompt or max_tokens"
        )
