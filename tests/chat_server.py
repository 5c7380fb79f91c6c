"""A server of chat completions for tests: it answers by a function, and fails as it is told to.

    with ChatServer(lambda messages: "go north", faults=[status(503), None, stall()]) as server:
        OpenAICompleter(server.model, server.url)

`faults` says what comes of the first request, the second, and so on: a fault, or None for an
answer. It may also be a function of the number of a request, from 0, and its body. After the last
fault every request is answered.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Fault = Callable[["Handler"], None]
Answer = Callable[[list[dict[str, Any]]], "str | dict[str, Any]"]
"""Messages to the text, or to fields of the choice: content, finish_reason, usage, ..."""


@dataclass
class Asked:
    """A request for a completion, with the server's clock when it came."""

    body: dict[str, Any]
    headers: dict[str, str]
    at: float = field(default_factory=time.monotonic)


class ChatServer:
    """Listens on a free port of this machine while its `with` block lasts.

    Attributes:
        url: With `/v1`.
        requests: Those for completions, in order of their arrival.
        listed: Names of the models that `GET /models` tells; None is a server without that path.
        gone: Requests whose client went away before the answer.
        connections: How many clients have opened.
    """

    def __init__(
        self,
        answer: Answer,
        faults: Iterable[Fault | None] | Callable[[int, dict[str, Any]], Fault | None] = (),
        *,
        model: str = "scripted",
        key: str | None = None,
        latency_s: float = 0.0,
    ) -> None:
        self.answer, self.model, self.key, self.latency_s = answer, model, key, latency_s
        self.listed: list[dict[str, Any]] | None = [{"id": model, "object": "model"}]
        self.requests: list[Asked] = []
        self.gone = self.connections = 0
        self.closing = threading.Event()
        self._faults = faults if callable(faults) else self._in_turn(iter(faults))
        self._lock = threading.Lock()

    @staticmethod
    def _in_turn(faults):
        return lambda number, body: next(faults, None)

    def fault(self, asked: Asked) -> Fault | None:
        with self._lock:
            self.requests.append(asked)
            return self._faults(len(self.requests) - 1, asked.body)

    def __enter__(self) -> ChatServer:
        handler = type("Bound", (Handler,), {"chat": self})
        self._web = _Web(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._web.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._web.server_port}/v1"
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._web.shutdown()
        self._web.server_close()
        self._thread.join()


def unanswered(messages: list[dict[str, Any]]) -> str:
    """Return what OpenAI's API says of calls without results, or results without calls; "" if none.

    The results of a message's calls follow it at once, each with the id of its call.
    """
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if message.get("tool_call_id") not in waiting:
                return "messages with role 'tool' must be a response to a preceding 'tool_calls'"
            waiting.remove(message["tool_call_id"])
        elif waiting:
            return f"tool_call_ids did not have response messages: {', '.join(waiting)}"
        else:
            waiting = [call["id"] for call in message.get("tool_calls") or []]
    return f"tool_call_ids did not have response messages: {waiting}" if waiting else ""


def tool_call(name: str, arguments: Any, call_id: str = "call-1") -> dict[str, Any]:
    """Return a call of a tool as the API tells it; arguments that are no text become JSON."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


class _Web(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def handle_error(self, request, client_address):
        """Say nothing: clients of these tests go away when they like."""


class Handler(BaseHTTPRequestHandler):
    """Answers one connection's requests."""

    chat: ChatServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    asked: Asked

    def setup(self):
        super().setup()
        self.chat.connections += 1

    def parse_request(self):
        parsed = super().parse_request()
        if parsed:  # whoever asks through a proxy names the whole address
            self.path = re.sub(r"^http://[^/]*", "", self.path)
        return parsed

    def do_GET(self):
        if self.path != "/v1/models" or self.chat.listed is None:
            return self.send(404, {"error": {"message": "no such path"}})
        if not self.allowed():
            return None
        return self.send(200, {"object": "list", "data": self.chat.listed})

    def do_POST(self):
        length = int(self.headers["Content-Length"])
        body = json.loads(self.rfile.read(length))
        if self.path != "/v1/chat/completions":
            return self.send(404, {"error": {"message": "no such path"}})
        if not self.allowed():
            return None
        self.asked = Asked(body, dict(self.headers))
        fault = self.chat.fault(self.asked)
        if fault is not None:
            return fault(self)
        self.chat.closing.wait(self.chat.latency_s)
        return self.reply()

    def allowed(self):
        key = self.chat.key
        if key is None or self.headers["Authorization"] == f"Bearer {key}":
            return True
        shown = str(self.headers["Authorization"]).removeprefix("Bearer ")
        said = {"message": f"Incorrect API key provided: {shown}", "code": "invalid_api_key"}
        self.send(401, {"error": said})
        return False

    def reply(self, **changes):
        """Answer by the server's function, with some fields of the choice changed."""
        body = self.asked.body
        if body["model"] != self.chat.model:
            said = f"The model `{body['model']}` does not exist."
            return self.send(404, {"error": {"message": said, "code": "model_not_found"}})
        wrong = unanswered(body["messages"])
        if wrong:
            return self.send(400, {"error": {"message": wrong, "type": "invalid_request_error"}})
        said = self.chat.answer(body["messages"])
        said = ({"content": said} if isinstance(said, str) else dict(said)) | changes
        words = sum(len(str(message["content"]).split()) for message in body["messages"])
        spoken = len(str(said.get("content") or "").split()) + 1
        usage = {"prompt_tokens": words, "completion_tokens": spoken}
        usage = said.pop("usage", usage)
        reason = said.pop("finish_reason", "tool_calls" if said.get("tool_calls") else "stop")
        if body.get("stream"):
            return self.stream(said, reason, usage)
        choice = {"index": 0, "message": {"role": "assistant"} | said, "finish_reason": reason}
        return self.send(200, self.frame("chat.completion", [choice]) | {"usage": usage})

    def frame(self, kind, choices):
        return {
            "id": "chatcmpl-1",
            "object": kind,
            "created": 0,
            "model": f"{self.chat.model}-served",
            "system_fingerprint": "fp-1",
            "choices": choices,
        }

    def events(self, said, reason, usage):
        """Return the events of a streamed answer, the last one included."""
        content = said.get("content") or ""
        pieces = [content[i : i + 3] for i in range(0, len(content), 3)]
        thoughts = [{"reasoning_content": piece} for piece in said.get("reasoning_content") or ""]
        deltas = [{"role": "assistant", "content": ""}, *thoughts]
        deltas += [{"content": piece} for piece in pieces]
        for index, call in enumerate(said.get("tool_calls") or []):
            name, arguments = call["function"]["name"], call["function"]["arguments"]
            begun = {"index": index, **call, "function": {"name": name, "arguments": ""}}
            parts = [arguments[i : i + 3] for i in range(0, len(arguments), 3)]
            rest = [{"index": index, "function": {"arguments": part}} for part in parts]
            deltas += [{"tool_calls": [part]} for part in (begun, *rest)]
        frames = [
            self.frame("chat.completion.chunk", [{"delta": delta, "finish_reason": None}])
            for delta in deltas
        ]
        frames.append(self.frame("chat.completion.chunk", [{"delta": {}, "finish_reason": reason}]))
        if self.asked.body.get("stream_options", {}).get("include_usage"):
            frames.append(self.frame("chat.completion.chunk", []) | {"usage": usage})
        return [*(f"data: {json.dumps(frame)}\n\n" for frame in frames), "data: [DONE]\n\n"]

    def stream(self, said, reason, usage):
        self.chunked([": begin\r\n\r\n", *self.events(said, reason, usage)])

    def chunked(self, events, pause_s=0.0, end=True):
        """Send text in chunks; without its `end` the connection breaks."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events:
            content = event.encode()
            self.write(b"%x\r\n%s\r\n" % (len(content), content))
            self.chat.closing.wait(pause_s)
        if end:
            self.write(b"0\r\n\r\n")
        else:
            self.close_connection = True

    def send(self, status, body, headers=None, kind="application/json"):
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.write(content)

    def write(self, content):
        try:
            self.wfile.write(content)
        except OSError:
            self.chat.gone += 1
            self.close_connection = True

    def log_message(self, *args):
        pass


def status(number: int, said: Any = "no", *, retry_after: str | None = None, **error: Any) -> Fault:
    """Return a fault with a status, the server's words and further fields of its error."""
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    body = {"error": {"message": said, "type": "error", "code": number} | error}
    return lambda handler: handler.send(number, body, headers)


def body(content: bytes | Any, kind: str = "application/json", code: int = 200) -> Fault:
    """Return a fault that sends this body."""
    return lambda handler: handler.send(code, content, kind=kind)


def choice(**changes: Any) -> Fault:
    """Return the answer, with some fields of its choice changed."""
    return lambda handler: handler.reply(**changes)


def empty() -> Fault:
    """Return a fault that says nothing, and that it said so on purpose."""
    return choice(content="", usage={"prompt_tokens": 5, "completion_tokens": 0})


def silent() -> Fault:
    """Return a fault that looks like a model that ends its turn at once: one token, no text."""
    return choice(content="")


def huge(characters: int = 10_000_000) -> Fault:
    """Return a fault that says far more than it may."""
    return choice(content="x" * characters)


def stall(seconds: float = 60.0) -> Fault:
    """Return a fault that keeps the connection and sends nothing."""

    def wait(handler: Handler) -> None:
        handler.chat.closing.wait(seconds)
        handler.close_connection = True

    return wait


def hang_up() -> Fault:
    """Return a fault that closes the connection without a word."""

    def close(handler: Handler) -> None:
        handler.close_connection = True

    return close


def cut_body() -> Fault:
    """Return a fault that breaks off in the middle of a body."""

    def cut(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", "4000")
        handler.end_headers()
        handler.write(b'{"id": "chatcmpl-1", "choices": [{"message": {"content": "go ')
        handler.close_connection = True

    return cut


def drip(pause_s: float) -> Fault:
    """Return a fault that sends a space, waits, sends another one, and so on without end."""

    def trickle(handler: Handler) -> None:
        def spaces():
            while not (handler.close_connection or handler.chat.closing.is_set()):
                yield " "

        handler.chunked(spaces(), pause_s, end=False)

    return trickle


def broken_stream(keep: int = 3, *, end: bool = False, last: str = "") -> Fault:
    """Return a fault that sends the first events of an answer, then `last`.

    Without its `end` the connection breaks; with it the transfer is whole and the answer is not.
    """

    def stream(handler: Handler) -> None:
        events = handler.events({"content": "go to the far end"}, "stop", {})[:keep]
        handler.chunked([*events, last] if last else events, end=end)

    return stream
