"""Answers of the policy as messages: calls of tools, thoughts, and the texts that end an answer."""

from __future__ import annotations

import json
import uuid
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from agentgyms.core.tools import BadCall, ToolCall
from agentgyms.models.types import ServedCall
from harness.model.tokenizer import ChatTokenizer
from harness.prompts import tool_formats
from harness.prompts.answers import after_thoughts, has_thoughts, outside_thoughts
from harness.training.gateway.chat_requests import ChatMessage, ChatRequest, Refused, check_plain
from harness.types.rollout import Completion, Usage

_CALL: Final = "<tool_call>"
_JSON_TYPES: Final = ("integer", "number", "boolean", "object", "array", "null")


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as the agent gets it."""

    message: ChatMessage
    thoughts: str  # text before the message; "" for none
    reason: str  # `stop`, `tool_calls` or `length`
    completion: Completion


class AnswerMaker:
    """Makes answers of completions; `tool_format` names the format of calls, or is "auto"."""

    def __init__(self, chat_tokenizer: ChatTokenizer, tool_format: str = "auto") -> None:
        self._chat_tokenizer = chat_tokenizer
        found = chat_tokenizer.chat_encoder.tool_format
        name = found if tool_format == "auto" else tool_format
        self._format = tool_formats.FORMATS.get(name) if name else None

    def answer(self, request: ChatRequest, completion: Completion) -> Answer:
        """Return the answer to a request."""
        whole, completion = completion, self._cut(completion, request.stop)
        text = completion.text
        if completion is not whole:
            text = text[: min(at for stop in request.stop if (at := text.find(stop)) >= 0)]
        shown = after_thoughts(text) if has_thoughts(text) else text
        thoughts = text.removesuffix(shown)
        calls = self._calls(text, request.tools) if request.tools else ()
        if calls:
            shown = shown.partition(_CALL)[0].strip() if _CALL in shown else ""
        reason = "tool_calls" if calls else "stop" if completion.finished else "length"
        return Answer(ChatMessage("assistant", shown, calls), thoughts, reason, completion)

    def write_calls(self, calls: Sequence[ServedCall]) -> str:
        """Return the text of tool calls as the model would write it, or raise `Refused`."""
        if self._format is None:
            raise Refused("the model's chat template has no known format of calls of tools")
        return "\n".join(self._format.write(_read(call)) for call in calls)

    def _calls(self, text: str, tools: Sequence[dict[str, Any]]) -> tuple[ServedCall, ...]:
        """Return the calls in an answer; a faulty one makes the answer a text."""
        if self._format is None:
            raise Refused("the model's chat template has no known format of calls of tools")
        try:
            calls = self._format.parse(outside_thoughts(text))
        except BadCall:
            return ()
        if self._format.untyped:
            calls = [_typed(call, tools) for call in calls]
        return tuple(
            ServedCall(f"call_{uuid.uuid4().hex[:24]}", call.name, json.dumps(dict(call.arguments)))
            for call in calls
        )

    def _cut(self, completion: Completion, stops: Sequence[str]) -> Completion:
        """Return a completion that ends with the token that completes the first of some texts."""
        ids = completion.response_ids

        def has_stop(count: int) -> bool:
            text = self._chat_tokenizer.decode_answer(ids[:count])
            return any(stop in text for stop in stops)

        if not stops or not has_stop(len(ids)):
            return completion
        kept = bisect_left(range(len(ids) + 1), True, key=has_stop)
        start, end = (min(place, kept) for place in completion.inserted)
        return replace(
            completion,
            text=self._chat_tokenizer.decode_answer(ids[:kept]),
            response_ids=ids[:kept],
            logprobs=completion.logprobs[: kept - (end - start)],
            inserted=(start, end) if end > start else (0, 0),
            finished=True,
            usage=Usage(len(completion.prompt_ids), kept, 1),
        )


def _read(call: ServedCall) -> ToolCall:
    try:
        arguments = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        arguments = None
    if not isinstance(arguments, dict):
        raise Refused(f"the arguments of the call {call.id:.40} are no JSON object")
    check_plain(arguments, f"arguments of the call {call.id:.40}")
    return ToolCall(call.name, arguments)


def _typed(call: ToolCall, tools: Sequence[dict[str, Any]]) -> ToolCall:
    """Return a call of texts alone with values of the types in the tool's schema."""
    schemas: dict[str, Any] = next(
        (
            tool["function"].get("parameters", {}).get("properties", {})
            for tool in tools
            if tool["function"]["name"] == call.name
        ),
        {},
    )

    def value(name: str, text: Any) -> Any:
        if not isinstance(text, str) or schemas.get(name, {}).get("type") not in _JSON_TYPES:
            return text
        try:
            return json.loads(text)
        except ValueError:
            return text

    return ToolCall(call.name, {name: value(name, text) for name, text in call.arguments.items()})
