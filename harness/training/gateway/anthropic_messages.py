"""Anthropic's messages: bodies become those of OpenAI's chat completions, answers their replies."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any, Final

from harness.training.gateway.answers import Answer
from harness.training.gateway.chat_requests import ChatRequest, Refused

_CHOICES: Final = {"auto": "auto", "any": "required", "none": "none"}
_REASONS: Final = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}


def as_chat(body: Any) -> dict[str, Any]:
    """Return the equivalent body of a chat completion. Raises `Refused` for an unknown form."""
    try:
        return _as_chat(body)
    except (KeyError, TypeError, AttributeError) as e:
        raise Refused(
            f"the body is no request of the messages API: {type(e).__name__} {e}"
        ) from None


def _as_chat(body: dict[str, Any]) -> dict[str, Any]:
    system = body.get("system")
    messages = [{"role": "system", "content": _parts(system)}] if system else []
    for message in body["messages"]:
        messages += _messages(message["role"], message["content"])
    chat = {
        "messages": messages,
        "max_tokens": body["max_tokens"],
        "stop": body.get("stop_sequences") or None,
        "stream": body.get("stream"),
    }
    if body.get("tools"):
        chat["tools"] = [_tool(tool) for tool in body["tools"]]
    choice = body.get("tool_choice")
    if choice:
        kind = choice["type"]
        named = {"type": "function", "function": {"name": choice.get("name")}}
        chat["tool_choice"] = named if kind == "tool" else _CHOICES[kind]
    return chat


def _tool(tool: dict[str, Any]) -> dict[str, Any]:
    function = {
        "name": tool["name"],
        "description": tool.get("description", ""),
        "parameters": tool["input_schema"],
    }
    return {"type": "function", "function": function}


def _messages(role: str, content: Any) -> list[dict[str, Any]]:
    """Return a message as those of a chat, where each tool result is a message."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    results = [
        {
            "role": "tool",
            "tool_call_id": block["tool_use_id"],
            "content": _parts(block.get("content") or ""),
        }
        for block in blocks
        if block["type"] == "tool_result"
    ]
    calls = [
        {
            "id": block["id"],
            "type": "function",
            "function": {"name": block["name"], "arguments": json.dumps(block["input"])},
        }
        for block in blocks
        if block["type"] == "tool_use"
    ]
    rest = [block for block in blocks if block["type"] in ("text", "image")]
    if not rest and not calls:
        return results
    spoken = {"role": role, "content": _parts(rest), **({"tool_calls": calls} if calls else {})}
    return [*results, spoken]


def _parts(content: Any) -> Any:
    if isinstance(content, str):
        return content
    return [_part(block) for block in content]


def _part(block: dict[str, Any]) -> dict[str, Any]:
    if block["type"] != "image":
        return {"type": "text", "text": block["text"]}
    source = block["source"]
    return {
        "type": "image_url",
        "image_url": {"url": f"data:{source['media_type']};base64,{source['data']}"},
    }


def reply(answer: Answer, model: str) -> dict[str, Any]:
    """Return the object of an answer."""
    message, made = answer.message, answer.completion
    blocks: list[dict[str, Any]] = []
    if message.content or not message.calls:
        blocks.append({"type": "text", "text": message.content})
    blocks += [
        {"type": "tool_use", "id": c.id, "name": c.name, "input": json.loads(c.arguments)}
        for c in message.calls
    ]
    return {
        "id": f"msg_{uuid.uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": blocks,
        "stop_reason": _REASONS[answer.reason],
        "stop_sequence": None,
        "usage": {"input_tokens": len(made.prompt_ids), "output_tokens": len(made.response_ids)},
    }


def events(answer: Answer, _: ChatRequest, model: str) -> Iterator[str]:
    """Yield the events of a stream, each block in one."""
    whole = reply(answer, model)
    begun = {**whole, "content": [], "stop_reason": None}
    yield _event({"type": "message_start", "message": begun})
    for index, block in enumerate(whole["content"]):
        if block["type"] == "text":
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            written = json.dumps(block["input"])
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": written}
        yield _event({"type": "content_block_start", "index": index, "content_block": empty})
        yield _event({"type": "content_block_delta", "index": index, "delta": delta})
        yield _event({"type": "content_block_stop", "index": index})
    end = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    used = {"output_tokens": whole["usage"]["output_tokens"]}
    yield _event({"type": "message_delta", "delta": end, "usage": used})
    yield _event({"type": "message_stop"})


def error(refused: Refused) -> dict[str, Any]:
    """Return the object of an error."""
    kind = "invalid_request_error" if refused.status < 500 else "api_error"
    return {"type": "error", "error": {"type": kind, "message": str(refused)}}


def _event(value: dict[str, Any]) -> str:
    return f"event: {value['type']}\ndata: {json.dumps(value)}\n\n"
