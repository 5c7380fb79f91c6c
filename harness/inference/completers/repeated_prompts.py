"""Answers of a policy of this process where prompts come again and again, as continuations' do."""

from __future__ import annotations

from collections.abc import Sequence

from agentgyms.core import tracing
from harness.inference.completers import Sampling
from harness.inference.completers.hf import HFCompleter
from harness.inference.completers.local_answers import Request
from harness.inference.completers.next_tokens import LARGEST_VOCABULARY, NextTokens
from harness.types.messages import Message
from harness.types.rollout import Completion


class RepeatedPrompts:
    """A completer for repeated prompts while the weights stay the same.

    Equal beginnings of prompts are read once. With a small vocabulary the distribution after a
    prompt and a part of an answer is computed once, too. Answers are drawn as by the completer
    itself; log-probabilities may differ in their last bits, as the size of a batch changes.
    """

    def __init__(self, own: HFCompleter) -> None:
        is_small = len(own.policy.tokenizer) <= LARGEST_VOCABULARY
        self._own, self._known = own, NextTokens[Request]() if is_small else None

    @tracing.traced("transformers")
    async def complete(
        self, messages: Sequence[Message], sampling: Sampling, seed: int
    ) -> Completion:
        """Return the response to `messages`; see `HFCompleter.complete`."""
        request = self._own.request(messages, sampling, seed)
        request.is_repeated = True
        if self._known is not None and sampling.max_thought_tokens is None:
            drawn = sampling.temperature, sampling.top_p
            request.point = self._known.start((request.prompt_ids, request.images, drawn))
        return await self._own.answer(request)
