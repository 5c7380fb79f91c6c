"""Tokens of a rollout's earlier answers: an agent sends texts back, and the policy reads tokens."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from agentgyms.models.types import ServedCall
from harness.prompts.answers import after_thoughts, has_thoughts
from harness.training.gateway.chat_requests import ChatMessage, ChatRequest
from harness.types.messages import Content, Message
from harness.types.rollout import Completion

_ANYWHERE: Final = ""


@dataclass(frozen=True, slots=True)
class Prompt:
    """The prompt of a request."""

    messages: list[Message]  # with the tokens of the known answers
    place: str  # digest of the whole chat


class TokenMemory:
    """The answers of one rollout, recognised in the messages of its later requests.

    An answer is identified by its calls' ids and its text: first at its place in the chat, then
    anywhere. A message that the agent changed or wrote itself is encoded as text.
    """

    def __init__(
        self, write_calls: Callable[[Sequence[ServedCall]], str], *, strip_thoughts: bool = False
    ) -> None:
        self._write_calls, self._strip_thoughts = write_calls, strip_thoughts
        # (place, text, ids of calls) -> (identity, answer)
        self._known: dict[tuple[str, str, tuple[str, ...]], tuple[str, Completion]] = {}

    def prompt(self, request: ChatRequest) -> Prompt:
        """Return the prompt of a request."""
        # A chain of digests: equal chats so far, with equal tools, have equal places.
        place = _digest(_ANYWHERE, request.tools)
        messages: list[Message] = []
        for one in request.messages:
            found = self._find(place, one) if one.role == "assistant" else None
            place = _digest(place, found[0] if found else _described(one))
            messages.append(self._answer(found[1]) if found else self._message(one))
        if request.tools:
            messages[0]["tools"] = request.tools
        return Prompt(messages, place)

    def remember(self, prompt: Prompt, answer: ChatMessage, completion: Completion) -> None:
        """Remember an answer to a prompt, as the agent got it."""
        text, calls = _key(answer)
        name = _digest(prompt.place, [text, calls, len(self._known)])
        for place in (prompt.place, _ANYWHERE):
            # An agent may send calls back without the text of their answer.
            for shown in {text, ""} if calls else {text}:
                self._known[place, shown, calls] = (name, completion)

    def _find(self, place: str, message: ChatMessage) -> tuple[str, Completion] | None:
        text, calls = _key(message)
        if not (text or calls):
            return None
        return self._known.get((place, text, calls)) or self._known.get((_ANYWHERE, text, calls))

    def _answer(self, completion: Completion) -> Message:
        message: Message = {
            "role": "assistant",
            "content": completion.text,
            "token_ids": completion.response_ids,
        }
        if self._strip_thoughts and has_thoughts(completion.text):
            message |= {"content": after_thoughts(completion.text), "without_thoughts": True}
        return message

    def _message(self, one: ChatMessage) -> Message:
        if not one.calls:
            return {"role": one.role, "content": one.content}
        written = self._write_calls(one.calls)
        return {"role": one.role, "content": "\n".join(filter(None, [_text(one.content), written]))}


def _key(message: ChatMessage) -> tuple[str, tuple[str, ...]]:
    return _text(message.content).strip(), tuple(call.id for call in message.calls)


def _text(content: Content) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part["type"] == "text")


def _described(message: ChatMessage) -> list[Any]:
    """Return the identity of a message, JSON-plain."""
    content: Any = message.content
    if not isinstance(content, str):
        content = [p["text"] if p["type"] == "text" else [p["image"].digest] for p in content]
    return [message.role, content, [[c.name, c.arguments] for c in message.calls], message.call_id]


def _digest(before: str, value: Any) -> str:
    return sha256(f"{before} {json.dumps(value)}".encode()).hexdigest()
