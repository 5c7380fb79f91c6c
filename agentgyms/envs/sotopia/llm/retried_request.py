"""A request to a model, retried once if its answer cannot be parsed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from agentgyms.core.errors import PromptTooLong
from agentgyms.core.randomness import Chance
from agentgyms.envs.sotopia.action_parsing import ParseFailure
from agentgyms.envs.sotopia.llm import prompts
from agentgyms.models.sync_client import SyncChatClient
from agentgyms.models.types import Message
from agentgyms.models.usage import Usage

_SEEDS: Final = 2**31

T = TypeVar("T")


class RetriedRequest:
    """Sends a prompt to a model, and a retry prompt if the answer cannot be parsed.

    The retry prompt repeats the answer's JSON schema. `name`, with the number of the attempt, is
    the key of the requests' seeds.
    """

    def __init__(
        self, client: SyncChatClient, prompt: str, schema: str, name: Sequence[object]
    ) -> None:
        self.usage = Usage()
        self._client, self._name = client, name
        self._prompt, self._schema = prompt, schema
        self._requests: list[tuple[Sequence[Message], int]] = []

    def complete(self, parse: Callable[[str], T | ParseFailure]) -> T | ParseFailure:
        """Return the parsed answer; that of the second attempt if the first cannot be parsed.

        Raises `ModelUnavailable` (retrying is safe), `BadOption` if the server rejects the request,
        and `PromptTooLong`.
        """
        answer = self._answer([_user(self._prompt)], 0)
        result = parse(answer)
        if not isinstance(result, ParseFailure):
            return result
        try:
            return parse(self._answer(self._retry_messages(answer, result.reason), 1))
        except PromptTooLong:
            return result

    def forget(self) -> None:
        """Delete the answers from the cache, so that the next request reaches the model."""
        for messages, seed in self._requests:
            self._client.forget(messages, seed)

    def _answer(self, messages: Sequence[Message], attempt: int) -> str:
        seed = Chance("sotopia", *self._name, attempt).below(_SEEDS)
        answer = self._client.complete(messages, seed)
        self._requests.append((messages, seed))
        cost = self._client.model.cost(answer)
        self.usage += Usage(answer.prompt, answer.response, 1, cost)
        return answer.text

    def _retry_messages(self, answer: str, wrong: str) -> list[Message]:
        """Return the messages of the retry; without an empty turn, which servers reject."""
        retry = prompts.retry_prompt(wrong, self._schema)
        if not answer.strip():
            return [_user(f"{self._prompt}\n\n{retry}")]
        previous: Message = {"role": "assistant", "content": answer}
        return [_user(self._prompt), previous, _user(retry)]


def _user(text: str) -> Message:
    return {"role": "user", "content": text}
