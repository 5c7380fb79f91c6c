"""Completers: messages in, text out, with token ids and log-probabilities where they are known.

`hf.py` and `vllm.py` generate in this process. `vllm_servers.py` sends requests to vLLM servers
that follow the policy in training, `openai.py` to servers with OpenAI's chat API. `scripted.py`
answers with a function.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from agentgyms.models.types import Sampling
from harness.types.errors import ContextOverflow
from harness.types.messages import Message
from harness.types.rollout import Completion

__all__ = ["Completer", "Sampling", "check_length"]


def check_length(prompt_ids: Sequence[int], sampling: Sampling, limit: int) -> None:
    """Refuse a prompt that leaves no room for the longest response.

    Raises:
        ContextOverflow: Both together are longer than `limit` tokens.
    """
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
