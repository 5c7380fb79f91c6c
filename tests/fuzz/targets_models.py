"""Targets: what servers of models and retrievers answer, and what is kept of it."""

from __future__ import annotations

import asyncio
import json
import os
from functools import cache
from typing import Any

import httpx2
from fuzz_target import Broken, scratch, target, written

from agentgyms.core.errors import BadOption, ServerUnavailable
from agentgyms.envs.searchqa.http_retriever import HttpRetriever
from agentgyms.models.answer_store import AnswerStore
from agentgyms.models.error_replies import RequestRejected, advice, redact, rejected_field
from agentgyms.models.model_config import read_model
from agentgyms.models.rate_limit import RetryableError
from agentgyms.models.replies import read_reply
from agentgyms.models.types import Sampling
from agentgyms.remote.transport import Reply

MAX_TOKENS = 64


@cache
def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.new_event_loop()


def _reply_seeds() -> list[bytes]:
    usage = {"prompt_tokens": 5, "completion_tokens": 2}
    message = {"role": "assistant", "content": "Good day."}
    whole = {
        "model": "m",
        "system_fingerprint": "f",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": usage,
    }
    parts = [
        {"choices": [{"delta": {"content": "Good "}, "finish_reason": None}]},
        {"choices": [{"delta": {"content": [{"type": "text", "text": "day"}]}}]},
        {"choices": [{"delta": {}, "finish_reason": "length"}], "usage": usage},
    ]
    error = {"error": {"message": "context_length_exceeded", "code": 400, "param": "seed"}}
    stream = "".join(f"data: {json.dumps(part)}\n\n" for part in parts) + "data: [DONE]\n\n"
    head = '{"status": %d, "headers": {"content-type": "%s", "retry-after": "3"}}\n'
    return [
        (head % (200, "application/json") + json.dumps(whole)).encode(),
        (head % (200, "text/event-stream") + stream).encode(),
        (head % (400, "application/json") + json.dumps(error)).encode(),
        (head % (503, "text/html") + "<html>busy</html>").encode(),
    ]


@target(RetryableError, seeds=_reply_seeds, kind="lines", steps_per_byte=4_000)
def chat_replies(data: bytes) -> Any:
    """A reply is an answer, is asked for again, or is a refusal that can be shown."""
    head, _, body = data.partition(b"\n")
    response = _response(head, body)
    if response is None:
        return None
    try:
        reply = _loop().run_until_complete(read_reply(response, MAX_TOKENS))
    except RequestRejected as refused:
        sent = {"seed": 1, "top_p": 1, "max_tokens": 5, "n": 1}
        shown = advice(refused, "", images=1), redact(refused.message, "key")
        return shown, rejected_field(refused, sent), refused.too_long, refused.filtered
    reply.answer.text.encode()
    if len(reply.answer.text) > 200 * MAX_TOKENS:
        raise Broken("the answer is longer than its limit")
    return reply


def _response(head: bytes, body: bytes) -> httpx2.Response | None:
    """Return a response, or None for a head that no server can send."""
    try:
        fields = json.loads(head)
        status, headers = fields["status"], fields["headers"]
        if not 200 <= status < 600 or type(status) is not int:
            return None
        plain = {str(k): str(v) for k, v in headers.items() if k != "content-encoding"}
        return httpx2.Response(status, headers=plain, content=body)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


class _Answering:
    """A transport that answers every request alike."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def send(self, *_: Any, **__: Any) -> Reply:
        return Reply(200, {}, self._body)


def _hit_seeds() -> list[bytes]:
    document = {"id": "7", "contents": '"Title"\nA text.'}
    found = [[{"document": document, "score": 1.5}, {"document": {"contents": "x"}, "score": None}]]
    return [json.dumps({"result": found}).encode(), json.dumps({"result": [[document]]}).encode()]


@target(ServerUnavailable, seeds=_hit_seeds)
def retriever_replies(data: bytes) -> Any:
    """A retriever's reply is documents that can be shown, or no retriever's."""
    retriever = HttpRetriever("http://retriever:1/retrieve", token="", patience_s=0)
    retriever._idle[os.getpid()] = [_Answering(data)]  # type: ignore[list-item]
    hits = retriever.search("lamp", 3)
    return [(hit.document.title, hit.document.text, hit.document.key, hit.score) for hit in hits]


def _model_seeds() -> list[bytes]:
    plain = "qwen@http://localhost:8000/v1"
    full = {"name": "m", "url": "https://x.org/v1", "key_variable": "K", "temperature": 0.5,
        "top_p": 1, "max_tokens": 10, "timeout_s": 3, "retries": 2, "cache": True,
        "price_prompt": 0.1, "price_response": None, "extra": {"top_k": 3}}  # fmt: skip
    return [json.dumps(value).encode() for value in (plain, full)]


@target(BadOption, seeds=_model_seeds)
def model_arguments(data: bytes) -> Any:
    """An argument is a model or is refused."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return read_model(value, "partner", Sampling(temperature=0.7, top_p=1.0, max_tokens=100))


KEY = "k" * 64
ANSWER = {"text": "Good day.", "finished": True, "usage": [5, 2, 1]}


def _cache_seeds() -> list[bytes]:
    file = scratch() / "made.sqlite"
    file.unlink(missing_ok=True)
    store = AnswerStore(file)
    store.put(KEY, ANSWER)
    store.put("other", ANSWER)
    store.close()
    return [file.read_bytes(), b""]


@target(seeds=_cache_seeds, kind="bytes", steps_per_byte=200)
def answer_cache(data: bytes) -> Any:
    """Of a damaged file comes the answer that was stored or none, and it stops nobody."""
    file = written(data, "answers/answers.sqlite")
    store = AnswerStore(file)
    try:
        before = store.get(KEY)
        if before not in (None, ANSWER):
            raise Broken(f"an answer came out changed: {before}")
        return before, store.put(KEY, ANSWER)
    finally:
        store.close()
        for other in file.parent.glob("*"):
            other.unlink()
