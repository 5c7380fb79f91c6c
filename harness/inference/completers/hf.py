"""Generation with the policy itself: continuous batching over transformers' forward pass.

Requests join the running batch as they arrive and leave it as they finish. Each samples with its
own random numbers, so its text depends on its seed, not on the other requests in the batch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import torch

from agentgyms.core import tracing
from harness.inference.completers import Sampling, decoding_check, garbage
from harness.inference.completers.decoding import DecodeBatch
from harness.inference.completers.kept_batch import KeptBatch
from harness.inference.completers.local_answers import (
    GeneratedTokens,
    Request,
    check_length,
    completion_of,
)
from harness.model.learning_mode import evaluating
from harness.model.policy import Policy
from harness.model.tokenizer import ThoughtLimit
from harness.model.vocabulary.output_layer import hide
from harness.types.errors import ConfigError
from harness.types.messages import Message
from harness.types.rollout import Completion

JOIN_SHARE = 0.5
"""Waiting requests join the running batch once they are at least this share of its rows."""

_BELOW_ONE = 1 - 2.0**-24
"""The greatest number below 1 in float32: a random number of 1 would select no token."""


class HFCompleter:
    """Answers with a policy of this process.

    Args:
        max_batch: Most responses generated at once.
        max_length: Most tokens of prompt and response; None takes the model's own limit.
        kept_bytes: Most bytes of keys and values that are kept for prompts that begin alike, such
            as the turns of a chat. They change the last bits of log-probabilities. None takes
            `DEFAULT_BYTES` on the CPU, and 0 elsewhere and for tiny models in float32.

    Attributes:
        generated: Number of tokens so far, of all requests.
    """

    def __init__(
        self,
        policy: Policy,
        max_batch: int = 256,
        max_length: int | None = None,
        *,
        kept_bytes: int | None = None,
    ) -> None:
        """Compare the policy's decoding with the model alone, once for each policy.

        Raises:
            ConfigError: `max_batch` is not positive, the model decodes wrongly, or keys and values
                are to be kept that the model's layers do not have.
        """
        if max_batch < 1:
            raise ConfigError(f"max_batch must be at least 1, got {max_batch}")
        if not policy.decodes:
            decoding_check.check(policy)
            policy.decodes = True
        self._kept = decoding_check.checked_prefixes(policy, kept_bytes)
        self.policy, self.max_batch, self._stop_ids = policy, max_batch, policy.stop_ids
        self.chat_tokenizer = policy.chat_tokenizer
        self.max_length = min(policy.max_length, max_length or policy.max_length)
        self.generated = 0
        self._waiting: list[Request] = []
        self._worker: asyncio.Task[None] | None = None
        self._state: object = None

    @tracing.traced("transformers")
    async def complete(
        self, messages: Sequence[Message], sampling: Sampling, seed: int
    ) -> Completion:
        """Return the response to `messages`.

        The log-probabilities are those of the sampling distribution: at the sampling's temperature,
        and cut to `top_p` if that is below 1. At temperature 0 they are those of temperature 1, and
        `top_p` has no effect.

        Raises:
            ContextOverflow: Prompt and longest response do not fit into the model's context.
            ConfigError: The prompt shows an image and the model takes only text, or `top_p` is not
                in (0, 1].
        """
        return await self.answer(self.request(messages, sampling, seed))

    def request(self, messages: Sequence[Message], sampling: Sampling, seed: int) -> Request:
        """Return the request of `complete`, with the same errors."""
        if not 0 < sampling.top_p <= 1:
            raise ConfigError(f"sampling.top_p must be above 0 and at most 1, got {sampling.top_p}")
        prompt_ids = self.policy.chat_tokenizer.encode_chat(messages)
        check_length(prompt_ids, sampling, self.max_length)
        done: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        # All random numbers at once: an answer does not depend on its neighbours in the batch.
        uniforms = np.random.default_rng(seed).random(sampling.max_tokens)
        uniforms = np.minimum(uniforms, _BELOW_ONE)
        images = self.policy.chat_encoder.images(messages)
        limit = ThoughtLimit(self.policy.chat_tokenizer, sampling.max_thought_tokens)
        return Request(prompt_ids, images, sampling, uniforms, done, limit, limit.room(()))

    async def answer(self, request: Request) -> Completion:
        """Return the response to a request."""
        self._go_on(request)
        if self._waiting and (self._worker is None or self._worker.done()):
            self._worker = asyncio.create_task(self._generate())
        return await request.done

    async def _generate(self) -> None:
        """Generate until no request is left; the order of events depends only on the requests."""
        self._forget_others()
        batch = self._new_batch()
        joining: list[Request] = []
        garbage.freeze()
        try:
            with evaluating(self.policy.model):
                while self._waiting or batch.rows:
                    await asyncio.sleep(0)  # every episode that can make a request does so first
                    self._drop_cancelled(batch)
                    joining = self._take_joining(len(batch.rows))
                    self._advance(batch, joining)
        except Exception as e:
            asked = [*batch.rows, *joining, *self._waiting]
            for request in [*asked, *_released(asked)]:
                if not request.done.done():
                    request.done.set_exception(e)
            self._waiting.clear()

    def forget(self) -> None:
        """Drop the kept keys and values: the weights have changed."""
        if self._kept is not None:
            self._kept.clear()

    def _forget_others(self) -> None:
        """Drop what other weights or event loops made: a step must not depend on earlier ones."""
        if self._kept is None:
            return
        # torch counts no changes by fused optimizers, nor of tensors made in inference mode
        weights = list(self.policy.model.parameters())
        versions = sum(0 if one.is_inference() else one._version for one in weights)
        first = torch.cat([one.detach().flatten()[:1].float() for one in weights]).tolist()
        state = asyncio.get_running_loop(), versions, first
        if state != self._state:
            self._kept.clear()
        self._state = state

    def _new_batch(self) -> DecodeBatch[Request]:
        return (
            DecodeBatch(self.policy) if self._kept is None else KeptBatch(self.policy, self._kept)
        )

    @torch.inference_mode()
    def _drop_cancelled(self, batch: DecodeBatch[Request]) -> None:
        """Drop the requests of stopped episodes; requests that waited for one of them go on."""
        dropped = [one for one in [*batch.rows, *self._waiting] if one.done.cancelled()]
        if not dropped:
            return
        self._waiting = [request for request in self._waiting if not request.done.cancelled()]
        batch.keep([not request.done.cancelled() for request in batch.rows])
        for request in _released(dropped):
            self._go_on(request)

    def _go_on(self, request: Request) -> None:
        """Draw the tokens whose distributions are known, then wait for the model."""
        if request.done.cancelled():
            return
        point = request.point
        while point is not None and point.logprobs is not None:
            uniform = float(request.uniforms[len(request.response_ids)])
            drawn, logprob = point.draw(uniform, greedy=request.sampling.temperature == 0)
            if self._add(request, request.add(drawn, logprob)):
                return
            point = request.point
        if point is not None and point.is_asked:
            point.waiting.append(request)
            return
        if point is not None:
            point.is_asked = True
        self._waiting.append(request)

    def _take_joining(self, running: int) -> list[Request]:
        """Return the requests that join the batch now, at most as many as it has room for.

        They wait until they are at least `JOIN_SHARE` of the running rows, because joining costs a
        forward pass and a copy of the cache.
        """
        if len(self._waiting) < running * JOIN_SHARE:
            return []
        room = self.max_batch - running
        joining, self._waiting = self._waiting[:room], self._waiting[room:]
        return joining

    @torch.inference_mode()
    def _advance(self, batch: DecodeBatch[Request], joining: list[Request]) -> None:
        if batch.rows:
            self._add_tokens(batch, *self._sample(batch.rows, batch.decode()))
        if joining:
            newcomers = self._new_batch()
            logits = self._prefill(newcomers, joining)
            self._add_tokens(newcomers, *self._sample(joining, logits))
            batch.join(newcomers)

    def _prefill(self, batch: DecodeBatch[Request], joining: list[Request]) -> torch.Tensor:
        """Fill an empty batch with requests; return the logits of their first tokens. [B, V]."""
        if self._kept is not None:  # it reads all equal beginnings once
            return batch.prefill(joining, [one.tokens for one in joining])
        first: dict[object, int] = {}
        places = [
            first.setdefault((one.tokens, one.images) if one.is_repeated else id(one), i)
            for i, one in enumerate(joining)
        ]
        read = [joining[i] for i in first.values()]
        logits = batch.prefill(read, [one.tokens for one in read], [one.images for one in read])
        if len(read) == len(joining):
            return logits
        rows = {i: row for row, i in enumerate(first.values())}
        spread = [rows[i] for i in places]
        batch.spread(joining, spread)
        return logits[spread]

    def _sample(
        self, rows: list[Request], logits: torch.Tensor
    ) -> tuple[list[int], list[float], torch.Tensor]:
        """Draw a token for each row: inverse transform sampling with the row's random number.

        Returns the tokens, their log-probabilities and the log-probabilities of all tokens, [B, V].
        """
        temperatures = [row.sampling.temperature for row in rows]
        scale = torch.tensor([t or 1.0 for t in temperatures], device=logits.device)
        logits = hide(logits.float(), self.policy.hidden_tokens)
        distribution = torch.log_softmax(logits / scale[:, None], dim=-1)  # [B, V]
        shares = [row.sampling.top_p if row.sampling.temperature else 1.0 for row in rows]
        if min(shares) < 1:
            distribution = _nucleus(distribution, torch.tensor(shares, device=logits.device))
        numbers = [row.uniforms[len(row.response_ids)] for row in rows]
        uniform = torch.tensor(numbers, device=logits.device, dtype=torch.float32)
        cumulative = distribution.exp().cumsum(-1)  # [B, V]; its last column is 1 but for rounding
        drawn = torch.searchsorted(cumulative, (uniform * cumulative[:, -1])[:, None], right=True)
        drawn = drawn[:, 0].clamp(max=logits.shape[-1] - 1)  # [B]
        greedy = torch.tensor([t == 0 for t in temperatures], device=logits.device)
        token = torch.where(greedy, distribution.argmax(-1), drawn)
        logprob = distribution.gather(-1, token[:, None])[:, 0]
        return token.tolist(), logprob.tolist(), distribution

    def _add_tokens(
        self,
        batch: DecodeBatch[Request],
        tokens: list[int],
        logprobs: list[float],
        distribution: torch.Tensor,
    ) -> None:
        self.generated += len(tokens)
        released = _learned(batch.rows, distribution)
        unfinished, added = [], []
        for request, drawn, logprob in zip(batch.rows, tokens, logprobs, strict=True):
            sampled = not request.forced
            added.append(request.add(drawn, logprob))
            unfinished.append(not self._add(request, added[-1], sampled=sampled))
            if unfinished[-1] and request.point is not None:
                request.point.is_asked = True
        if isinstance(batch, KeptBatch):
            ends = zip(batch.rows, unfinished, strict=True)
            batch.keep_texts([None if goes_on else one.tokens[:-1] for one, goes_on in ends])
        batch.append(added)
        batch.keep(unfinished)
        for request in released:
            self._go_on(request)

    def _add(self, request: Request, token: int, *, sampled: bool = True) -> bool:
        """Follow a request to the point behind its new token; return whether it has ended."""
        if request.point is not None:
            request.point = request.point.after(token)
        ended = sampled and token in self._stop_ids
        full = len(request.response_ids) == request.sampling.max_tokens
        if (ended or full) and not request.done.done():
            logprobs, tokenizer = tuple(request.logprobs), self.policy.chat_tokenizer
            made = GeneratedTokens(tuple(request.response_ids), logprobs, ended, request.inserted)
            answer = completion_of(tokenizer, request.prompt_ids, made, request.images)
            request.done.set_result(answer)
        return ended or full


def _released(requests: Sequence[Request]) -> list[Request]:
    """Return the requests that wait for the same distributions as these."""
    points = [one.point for one in requests if one.point is not None]
    return [waiting for point in points for waiting in point.release()]


def _learned(requests: Sequence[Request], logprobs: torch.Tensor) -> list[Request]:
    """Keep distributions that requests share; return the requests that waited for them."""
    if all(one.point is None for one in requests):
        return []
    rows = zip((one.point for one in requests), logprobs.cpu().numpy(), strict=True)
    return [waiting for point, row in rows if point is not None for waiting in point.learn(row)]


def _nucleus(distribution: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    """Return distributions cut to the smallest set of likely tokens with probability `top_p`.

    Nucleus sampling (Holtzman et al. 2020, arXiv:1904.09751); the token that reaches the share
    belongs to the set. A row with share 1 is returned unchanged, bit for bit. `distribution` has
    log-probabilities, [B, V]; `top_p` has each row's share in (0, 1], [B]. The result is normalised
    again, with -inf outside the nucleus, [B, V].
    """
    ordered, order = distribution.sort(dim=-1, descending=True, stable=True)
    before = ordered.exp().cumsum(-1).roll(1, dims=-1)  # probability of all more likely tokens
    before[:, 0] = 0
    outside = torch.zeros_like(distribution, dtype=torch.bool)
    outside.scatter_(-1, order, before >= top_p[:, None])  # back in the order of the vocabulary
    cut = torch.log_softmax(distribution.masked_fill(outside, -torch.inf), dim=-1)
    return torch.where(top_p[:, None] < 1, cut, distribution)
