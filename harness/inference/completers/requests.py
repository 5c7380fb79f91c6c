"""Requests to a policy of this process, on their way through its batch."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import numpy as np

from harness.inference.completers import Sampling
from harness.inference.completers.next_tokens import Point
from harness.model.thoughts import ThoughtLimit
from harness.types.messages import Image
from harness.types.rollout import Completion


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
