"""Replies of OpenAI's chat completions: objects, streams of events, errors."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from typing import Any

from agentgyms.models.types import ServedCall
from harness.training.gateway.answers import Answer
from harness.training.gateway.chat_requests import ChatRequest, Refused


def reply(answer: Answer, model: str) -> dict[str, Any]:
    """Return the object of an answer."""
    choice = {
        "index": 0,
        "message": _message(answer),
        "finish_reason": answer.reason,
        "logprobs": None,
    }
    return {**_frame("chat.completion", model, [choice]), "usage": _usage(answer)}


def events(answer: Answer, request: ChatRequest, model: str) -> Iterator[str]:
    """Yield the events of a stream: the answer in one, its end, its tokens if they are wanted."""
    message = _message(answer)
    if "tool_calls" in message:
        message["tool_calls"] = [
            {"index": i, **call} for i, call in enumerate(message["tool_calls"])
        ]
    frame = _frame("chat.completion.chunk", model, [])
    for delta, reason in ((message, None), ({}, answer.reason)):
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        yield _event({**frame, "choices": [choice]})
    if request.include_usage:
        yield _event({**frame, "usage": _usage(answer)})
    yield "data: [DONE]\n\n"


def error(refused: Refused) -> dict[str, Any]:
    """Return the object of an error."""
    kind = "invalid_request_error" if refused.status < 500 else "server_error"
    fields = {"message": str(refused), "type": kind, "code": refused.code}
    return {"error": {**fields, "param": refused.param or None}}


def _message(answer: Answer) -> dict[str, Any]:
    message, thoughts = answer.message, answer.thoughts
    return {
        "role": "assistant",
        "content": message.content or (None if message.calls else ""),
        **({"reasoning_content": thoughts} if thoughts else {}),
        **({"tool_calls": [_call(call) for call in message.calls]} if message.calls else {}),
    }


def _call(call: ServedCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _usage(answer: Answer) -> dict[str, int]:
    read, made = len(answer.completion.prompt_ids), len(answer.completion.response_ids)
    return {"prompt_tokens": read, "completion_tokens": made, "total_tokens": read + made}


def _frame(kind: str, model: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": kind,
        "created": int(time.time()),
        "model": model,
        "choices": choices,
    }


def _event(value: dict[str, Any]) -> str:
    return f"data: {json.dumps(value)}\n\n"
