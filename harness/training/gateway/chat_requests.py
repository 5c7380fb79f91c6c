"""Requests for an answer, read from the bodies of OpenAI's chat completions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from agentgyms.core.errors import BadRequest
from agentgyms.core.serialization import decode_part
from agentgyms.models.types import ServedCall
from harness.types.errors import HarnessError
from harness.types.messages import Content, ImagePart, TextPart, shared_image, texts_of

_MOST_DEPTH: Final = 64
_PNG: Final = "data:image/png;base64,"
_ROLES: Final = ("system", "developer", "user", "assistant", "tool")
_ONLY: Final[dict[str, tuple[Any, ...]]] = {
    "n": (None, 1),
    "logprobs": (None, False),
    "logit_bias": (None, {}),
    "functions": (None, []),
    "presence_penalty": (None, 0),
    "frequency_penalty": (None, 0),
    "response_format": (None, {"type": "text"}),
}
"""Fields that would change the answer, and the values with which they do not."""


class Refused(HarnessError):
    """A request cannot be answered."""

    def __init__(
        self, message: str, status: int = 400, code: str = "invalid_request", param: str = ""
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.param = status, code, param


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a request."""

    role: str  # `system`, `user`, `assistant` or `tool`
    content: Content  # text, or parts with images
    calls: tuple[ServedCall, ...] = ()
    call_id: str = ""  # the call that a tool's message answers


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request for an answer; it has at least one message."""

    messages: tuple[ChatMessage, ...]
    tools: list[dict[str, Any]]  # in the form of OpenAI's API
    max_tokens: int | None = None  # None: no limit by the agent
    stop: tuple[str, ...] = ()  # texts that end the answer
    stream: bool = False  # reply as a stream of events
    include_usage: bool = False  # the stream ends with token counts

    @property
    def num_characters(self) -> int:
        """How many characters messages, calls and tools have, images aside."""
        count = len(json.dumps(self.tools)) if self.tools else 0
        for message in self.messages:
            count += sum(map(len, texts_of([{"role": message.role, "content": message.content}])))
            count += sum(len(call.name) + len(call.arguments) for call in message.calls)
        return count


def read(body: Any) -> ChatRequest:
    """Return a body's request, or raise `Refused`; temperature, `top_p` and seed have no effect."""
    if not isinstance(body, dict):
        raise Refused(f"the body must be a JSON object, got {type(body).__name__}")
    for name, values in _ONLY.items():
        if body.get(name) not in values:
            given = f"{name} = {body[name]!r:.60}"
            raise Refused(
                f"{given} cannot be had from a policy in training: leave it out", param=name
            )
    given = _typed(body, "messages", list)
    if not given:
        raise Refused("'messages' is empty: expected at least one", param="messages")
    options = _typed(body, "stream_options", dict, {})
    return ChatRequest(
        tuple(_message(one, f"messages[{i}]") for i, one in enumerate(given)),
        _tools(body),
        _max_tokens(body),
        _stops(body),
        _typed(body, "stream", bool, False),
        _typed(options, "include_usage", bool, False),
    )


def check_plain(value: Any, what: str) -> None:
    """Refuse texts with half a character (lone surrogates), and values that are nested too deep."""
    level = [value]
    for _ in range(_MOST_DEPTH):
        texts = [one for one in level if isinstance(one, str) and not one.isascii()]
        for text in texts:
            try:
                text.encode()
            except UnicodeEncodeError:
                raise Refused(f"the {what} has a lone surrogate, {text!r:.40}") from None
        dicts = [one for one in level if isinstance(one, dict)]
        level = [item for one in level if isinstance(one, list) for item in one]
        level += [item for one in dicts for item in (*one, *one.values())]
        if not level:
            return
    raise Refused(f"the {what} is nested deeper than {_MOST_DEPTH} levels")


def _typed(fields: Mapping[str, Any], name: str, kind: type, *default: Any, where: str = "") -> Any:
    path, value = f"{where}{name}", fields.get(name)
    if value is None and default:
        return default[0]
    if type(value) is not kind:
        given = "nothing" if value is None else type(value).__name__
        raise Refused(f"{path!r} must be of type {kind.__name__}, got {given}", param=path)
    return value


def _message(given: Any, where: str) -> ChatMessage:
    if not isinstance(given, dict):
        raise Refused(f"{where} must be an object, got {type(given).__name__}", param=where)
    role = given.get("role")
    if role not in _ROLES:
        raise Refused(
            f"{where}.role must be one of {', '.join(_ROLES)}, got {role!r:.40}",
            param=f"{where}.role",
        )
    content = _content(given.get("content"), f"{where}.content", may_lack=role == "assistant")
    if role == "tool":
        return ChatMessage(role, content, (), _typed(given, "tool_call_id", str, where=f"{where}."))
    calls = _typed(given, "tool_calls", list, [], where=f"{where}.") if role == "assistant" else []
    read_calls = tuple(_call(one, f"{where}.tool_calls[{i}]") for i, one in enumerate(calls))
    return ChatMessage("system" if role == "developer" else role, content, read_calls)


def _call(given: Any, where: str) -> ServedCall:
    if not isinstance(given, dict):
        raise Refused(f"{where} must be an object, got {type(given).__name__}", param=where)
    function = _typed(given, "function", dict, where=f"{where}.")
    places = ((given, "id"), (function, "name"), (function, "arguments"))
    return ServedCall(*(_typed(one, name, str, where=f"{where}.") for one, name in places))


def _content(given: Any, where: str, *, may_lack: bool) -> Content:
    if isinstance(given, str):
        return given
    if given is None and may_lack:
        return ""
    if not isinstance(given, list):
        raise Refused(f"{where} must be a text or a list of parts", param=where)
    parts = [_part(part, f"{where}[{i}]") for i, part in enumerate(given)]
    if any(part["type"] == "image" for part in parts):
        return parts
    return "\n".join(part["text"] for part in parts if part["type"] == "text")


def _part(given: Any, where: str) -> TextPart | ImagePart:
    kind = given.get("type") if isinstance(given, dict) else None
    if kind == "text":
        return {"type": "text", "text": _typed(given, "text", str, where=f"{where}.")}
    if kind != "image_url":
        raise Refused(f"{where} must be a part of type text or image_url", param=where)
    url = _typed(_typed(given, "image_url", dict, where=f"{where}."), "url", str)
    if not url.startswith(_PNG):
        raise Refused(f"{where} must be a PNG as a data URL, {_PNG}...", param=where)
    try:
        pixels = decode_part({"png": url.removeprefix(_PNG)}, where)
    except BadRequest as e:
        raise Refused(str(e), param=where) from None
    return {"type": "image", "image": shared_image(pixels)}


def _tools(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the tools that the policy may call; a choice of one of them leaves only that."""
    tools, choice = _typed(body, "tools", list, []), body.get("tool_choice")
    for i, tool in enumerate(tools):
        function = tool.get("function") if isinstance(tool, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            where = f"tools[{i}]"
            raise Refused(f"{where} must have a function with a name", param=where)
    if choice == "none":
        return []
    if not isinstance(choice, dict):
        return list(tools)
    wanted = _typed(_typed(choice, "function", dict, where="tool_choice."), "name", str)
    return [tool for tool in tools if tool["function"]["name"] == wanted]


def _max_tokens(body: Mapping[str, Any]) -> int | None:
    for name in ("max_completion_tokens", "max_tokens"):
        value = body.get(name)
        if value is not None:
            if type(value) is not int or value < 1:
                raise Refused(f"{name!r} must be an integer from 1, got {value!r:.40}", param=name)
            return value
    return None


def _stops(body: Mapping[str, Any]) -> tuple[str, ...]:
    given = body.get("stop")
    texts = [] if given is None else [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not all(isinstance(one, str) and one for one in texts):
        raise Refused("'stop' must be a text or a list of texts, none empty", param="stop")
    return tuple(texts)
