"""Completers: messages in, text out, with token ids and log-probabilities where they are known.

`hf.py` and `vllm.py` generate in this process; `hf.py` can keep what it has read
(`kept_prefixes.py`). `vllm_servers.py` sends requests to vLLM servers that follow the policy in
training, `openai.py` to servers with OpenAI's chat API. `scripted.py` answers with a function.
`local_answers.py` makes the answers of local policies.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, cast

from agentgyms.core import tracing
from agentgyms.models import types
from harness.types.errors import ContextOverflow
from harness.types.messages import Message
from harness.types.rollout import Completion

__all__ = ["Completer", "Sampling", "check_length", "traced"]

_Complete = TypeVar("_Complete", bound=Callable[..., Awaitable[Completion]])


@dataclass(frozen=True, slots=True)
class Sampling(types.Sampling):
    """Sampling options of a policy.

    Attributes:
        max_thought_tokens: A thought of so many tokens is closed; None sets no limit.
    """

    max_thought_tokens: int | None = None


def check_length(prompt_ids: Sequence[int], sampling: Sampling, limit: int) -> None:
    """Raise `ContextOverflow` if prompt and longest response have more than `limit` tokens."""
    if len(prompt_ids) + sampling.max_tokens > limit:
        raise ContextOverflow(
            f"a prompt of {len(prompt_ids)} tokens and {sampling.max_tokens} for the response "
            f"exceed the limit of {limit}: shorten the prompt or max_tokens"
        )


class Completer(Protocol):
    """Anything that answers messages. Many calls may run at once."""

    async def complete(
        self, messages: Sequence[Message], sampling: Sampling, seed: int
    ) -> Completion:
        """Return the response; equal messages, sampling and seed give an equal response."""
        ...


def traced(provider: str) -> Callable[[_Complete], _Complete]:
    """Return a decorator of `complete` of a policy in training: each answer is a span."""

    def decorate(complete: _Complete) -> _Complete:
        @functools.wraps(complete)
        async def answer(
            self: Any, messages: Sequence[Message], sampling: Sampling, seed: int
        ) -> Completion:
            with tracing.chat("policy", provider, sampling, seed) as span:
                made = await complete(self, messages, sampling, seed)
                span.answered(len(made.prompt_ids), len(made.response_ids), finished=made.finished)
                return made

        return cast(_Complete, answer)

    return decorate
