"""A client of retriever servers: those of Search-R1, SkyRL, verl-agent and this package."""

from __future__ import annotations

import math
import os
import random
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final
from weakref import WeakValueDictionary

from agentgyms.core import serialization
from agentgyms.core.errors import BadOption, BadRequest, ServerUnavailable
from agentgyms.core.http_clients import parse_address
from agentgyms.envs.searchqa.corpus import read_document
from agentgyms.envs.searchqa.retriever import PATIENCE_S, Hit
from agentgyms.remote.http_transport import HttpTransport
from agentgyms.remote.protocol import framing
from agentgyms.remote.transport import Reply

TOKEN_VARIABLE: Final = "AGENTGYMS_RETRIEVER_TOKEN"  # noqa: S105
"""Variable of the bearer token; not that of the environments, which others must not get."""

REQUEST_FORMS: Final = ("queries", "query")

_TIMEOUT_S: Final = (5.0, 60.0)
_FIRST_PAUSE_S: Final = 0.25
_LONGEST_PAUSE_S: Final = 10.0
_CACHED_QUERIES: Final = 8192
_JITTER: Final = random.SystemRandom()


class HttpRetriever:
    """Searches with POST requests; results are cached by query.

    Threads and forked processes may share it: each search takes an unused connection.

    Args:
        url: The whole address, such as `http://host:8000/retrieve`.
        request_form: `"queries"` sends `{"queries": [q], "topk": k, "return_scores": true}`, for
            Search-R1's server; `"query"` sends `{"query": q, ...}`, for that of SkyRL and
            verl-agent. `python -m env_servers.retriever` reads both.
        token: The bearer token, "" for none; None means that in `AGENTGYMS_RETRIEVER_TOKEN`.
        patience_s: The total retry time of a search; 0 means no retry. A request without a reply,
            or with status 429 or 5xx, is retried, after pauses that grow to 10 s or follow
            `Retry-After`.
        timeout_s: The timeouts of connecting, and of the reply to one request.

    Raises:
        BadOption: The address is invalid, the form unknown, or `patience_s` invalid.
    """

    def __init__(
        self,
        url: str,
        *,
        request_form: str = "queries",
        token: str | None = None,
        patience_s: float = PATIENCE_S,
        timeout_s: tuple[float, float] = _TIMEOUT_S,
    ) -> None:
        try:
            address = parse_address(url, with_query=True).geturl()
        except ValueError as e:
            raise BadOption(
                f"retriever {url!r} is no address ({e}): expected one such as "
                "http://host:8000/retrieve"
            ) from None
        if request_form not in REQUEST_FORMS:
            raise BadOption(
                f"request_form {request_form!r} is unknown: expected 'queries' or 'query'"
            )
        self._url, self._form, self._timeout_s = address, request_form, timeout_s
        known = isinstance(patience_s, int | float) and not isinstance(patience_s, bool)
        if not known or not 0 <= patience_s < math.inf:
            raise BadOption(
                "retriever_patience_s must be a number of seconds from 0 on, "
                f"got {patience_s!r:.60}"
            )
        self._patience_s = float(patience_s)
        token = _token_from_environment() if token is None else framing.check_token(token)
        self._headers = {"Content-Type": "application/json"}
        self._headers |= {"Authorization": f"Bearer {token}"} if token else {}
        # By process: forked processes must not share a connection. List operations need no lock.
        self._idle: dict[int, list[HttpTransport]] = {}
        self._cached_search = lru_cache(_CACHED_QUERIES)(self._request)

    def search(self, query: str, top_k: int) -> Sequence[Hit]:
        """Return the server's results; `ServerUnavailable` without an answer. See `Retriever`."""
        return self._cached_search(query, top_k)

    def close(self) -> None:
        """Close the unused connections; the next search opens another one."""
        idle = self._idle.get(os.getpid(), [])
        while idle:
            idle.pop().close()

    def _request(self, query: str, top_k: int) -> tuple[Hit, ...]:
        query_field: Any = [query] if self._form == "queries" else query
        body = serialization.dumps(
            {self._form: query_field, "topk": top_k, "return_scores": True}
        ).encode()
        reply = self._send(body)
        try:
            return tuple(_read_reply(reply.body))[:top_k]
        except (BadRequest, ValueError) as e:
            raise ServerUnavailable(
                f"{self._url} does not answer as a retriever does: {e}; check the address"
            ) from None

    def _send(self, body: bytes) -> Reply:
        deadline = time.monotonic() + self._patience_s
        attempts = 0
        while True:
            reply, reason = self._attempt(body)
            attempts += 1
            if reply is not None and reply.status == 200:
                return reply
            if reply is not None and reply.status < 500 and reply.status != 429:
                raise ServerUnavailable(
                    f"{self._url} refused a search ({reason}): check the address, request_form "
                    f"(now {self._form!r}) and the token in {TOKEN_VARIABLE}"
                )
            pause_s = _pause_s(reply, attempts)
            if time.monotonic() + pause_s > deadline:
                times = f"{attempts} attempt{'s' * (attempts > 1)} in {self._patience_s:g} s"
                raise ServerUnavailable(
                    f"no retriever answers at {self._url} ({reason}, {times}); start one with "
                    "python -m env_servers.retriever, or wait longer with retriever_patience_s"
                )
            time.sleep(pause_s)

    def _attempt(self, body: bytes) -> tuple[Reply | None, str]:
        """Return the reply to one request, or None, and a description of the result."""
        idle = self._idle.setdefault(os.getpid(), [])
        try:
            transport = idle.pop()
        except IndexError:
            transport = HttpTransport()
        try:
            reply = transport.send(
                "POST", self._url, headers=self._headers, body=body, timeout_s=self._timeout_s
            )
        except ServerUnavailable as e:
            transport.close()
            return None, str(e)
        idle.append(transport)
        return reply, f"status {reply.status}"


_SHARED: WeakValueDictionary[tuple[str, str, str, float], HttpRetriever] = WeakValueDictionary()


def shared_retriever(url: str, request_form: str, patience_s: float) -> HttpRetriever:
    """Return this process's retriever for an address; it is released with its last user."""
    token = _token_from_environment()
    made = HttpRetriever(url, request_form=request_form, token=token, patience_s=patience_s)
    return _SHARED.setdefault((url, request_form, token, float(patience_s)), made)


def _token_from_environment() -> str:
    return framing.check_token(os.environ.get(TOKEN_VARIABLE, ""))


def _pause_s(reply: Reply | None, attempts: int) -> float:
    """Return the pause after a number of attempts: `Retry-After`, or exponential backoff."""
    retry_after = "" if reply is None else reply.headers.get("Retry-After", "").strip()
    if retry_after.isascii() and retry_after.isdecimal():  # an HTTP date is ignored
        return max(float(retry_after), _FIRST_PAUSE_S)
    longest = min(_FIRST_PAUSE_S * 2.0 ** min(attempts - 1, 10), _LONGEST_PAUSE_S)
    return longest * _JITTER.uniform(0.5, 1.0)


def _read_reply(body: bytes) -> list[Hit]:
    """Parse the hits of a reply to one query; `ValueError` if it is invalid."""
    reply = serialization.loads(body, "reply")
    result = reply.get("result") if isinstance(reply, dict) else None
    if not isinstance(result, list) or len(result) != 1 or not isinstance(result[0], list):
        raise ValueError(f"'result' must be a list with one list of documents, got {reply!r:.80}")
    return [_read_hit(row) for row in result[0]]


def _read_hit(row: Any) -> Hit:
    """Parse a hit: `{"document": {...}, "score": 1.5}`, or a document alone."""
    if not isinstance(row, dict):
        raise ValueError(f"a document must be an object, got {row!r:.60}")
    if "document" not in row:
        return Hit(read_document(row), math.nan)
    document, score = row["document"], row.get("score")
    if not isinstance(document, dict):
        raise ValueError(f"'document' must be an object, got {document!r:.60}")
    return Hit(read_document(document), serialization.decode_number(score))
