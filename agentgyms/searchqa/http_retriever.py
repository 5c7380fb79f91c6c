"""A retriever on a server: Search-R1's, SkyRL's and verl-agent's requests, and ours."""

from __future__ import annotations

import math
import os
import random
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final
from weakref import WeakValueDictionary

from agentgyms import protocol, wire
from agentgyms.errors import BadOption, BadRequest, ServerUnavailable
from agentgyms.remote.http_transport import HttpTransport
from agentgyms.remote.transport import Reply
from agentgyms.searchqa.corpus import read_document
from agentgyms.searchqa.retriever import PATIENCE_S, Hit

TOKEN_VARIABLE: Final = "AGENTGYMS_RETRIEVER_TOKEN"  # noqa: S105
"""Where the bearer token is; another one than the environments', which others must not get."""

REQUEST_FORMS: Final = ("queries", "query")

_TIMEOUT_S: Final = (5.0, 60.0)
_FIRST_PAUSE_S: Final = 0.25
_LONGEST_PAUSE_S: Final = 10.0
_CACHED_QUERIES: Final = 8192
_JITTER: Final = random.SystemRandom()


class HttpRetriever:
    """Searches with POST requests; a query that was asked before is answered from a cache.

    Threads may share it, and processes that are forked: each search takes a connection that no
    other one is using.

    Args:
        url: The whole address, such as `http://host:8000/retrieve`.
        request_form: `"queries"` sends `{"queries": [q], "topk": k, "return_scores": true}`, which
            Search-R1's server reads, `"query"` sends `{"query": q, ...}`, which that of SkyRL and
            verl-agent reads. `python -m env_servers.retriever` reads both.
        token: Bearer token, "" for none; None takes that in `AGENTGYMS_RETRIEVER_TOKEN`.
        patience_s: How long a search is tried: a request without a reply, or with one of status 429
            or 5xx, is sent again, after pauses that grow to 10 s or as `Retry-After` says. 0 tries
            once.
        timeout_s: Longest time until connected, and until the reply to one request.

    Raises:
        BadOption: The address is none, the form is unknown, or the patience is no time.
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
        if not isinstance(url, str) or not url.startswith(("http://", "https://")):
            raise BadOption(
                f"retriever {url!r} is no address: expected one such as http://host:8000/retrieve"
            )
        if request_form not in REQUEST_FORMS:
            raise BadOption(
                f"request_form {request_form!r} is unknown: expected 'queries' or 'query'"
            )
        self._url, self._form, self._timeout_s = url, request_form, timeout_s
        self._patience_s = _check_patience(patience_s)
        token = _ambient_token() if token is None else protocol.check_token(token)
        self._headers = {"Content-Type": "application/json"}
        self._headers |= {"Authorization": f"Bearer {token}"} if token else {}
        # By process: two that are forked must not write to one connection. Appending to a list and
        # taking from it need no lock.
        self._idle: dict[int, list[HttpTransport]] = {}
        self._find = lru_cache(_CACHED_QUERIES)(self._ask)

    def search(self, query: str, top_k: int) -> Sequence[Hit]:
        """Return what the server finds; see `Retriever`.

        Raises:
            ServerUnavailable: No attempt got an answer, or it is none of a retriever.
        """
        return self._find(query, top_k)

    def close(self) -> None:
        """Close the connections that nobody uses now; the next search opens another one."""
        idle = self._idle.get(os.getpid(), [])
        while idle:
            idle.pop().close()

    def _ask(self, query: str, top_k: int) -> tuple[Hit, ...]:
        asked: Any = [query] if self._form == "queries" else query
        body = wire.dumps({self._form: asked, "topk": top_k, "return_scores": True}).encode()
        reply = self._send(body)
        try:
            return tuple(_read_reply(reply.body))[:top_k]
        except (BadRequest, ValueError) as e:
            raise ServerUnavailable(
                f"{self._url} does not answer as a retriever does: {e}; check the address"
            ) from None

    def _send(self, body: bytes) -> Reply:
        give_up = time.monotonic() + self._patience_s
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
            if time.monotonic() + pause_s > give_up:
                times = f"{attempts} attempt{'s' * (attempts > 1)} in {self._patience_s:g} s"
                raise ServerUnavailable(
                    f"no retriever answers at {self._url} ({reason}, {times}); start one with "
                    "python -m env_servers.retriever, or wait longer with retriever_patience_s"
                )
            time.sleep(pause_s)

    def _attempt(self, body: bytes) -> tuple[Reply | None, str]:
        """Return the reply to one request, None for none, and in words what came of it."""
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
    """Return the retriever of this process for an address: its cache serves all that use it.

    It lives for as long as somebody holds it.

    Raises:
        BadOption: An argument has a value it cannot have; see `HttpRetriever`.
    """
    token = _ambient_token()
    made = HttpRetriever(url, request_form=request_form, token=token, patience_s=patience_s)
    return _SHARED.setdefault((url, request_form, token, float(patience_s)), made)


def _ambient_token() -> str:
    return protocol.check_token(os.environ.get(TOKEN_VARIABLE, ""))


def _check_patience(patience_s: Any) -> float:
    known = isinstance(patience_s, int | float) and not isinstance(patience_s, bool)
    if not known or not 0 <= patience_s < math.inf:
        raise BadOption(
            f"retriever_patience_s must be a number of seconds from 0 on, got {patience_s!r:.60}"
        )
    return float(patience_s)


def _pause_s(reply: Reply | None, attempts: int) -> float:
    """Return how long to wait after so many attempts: what the reply asks for, or ever longer."""
    asked = "" if reply is None else reply.headers.get("Retry-After", "").strip()
    if asked.isascii() and asked.isdecimal():
        return max(float(asked), _FIRST_PAUSE_S)
    longest = min(_FIRST_PAUSE_S * 2.0 ** min(attempts - 1, 10), _LONGEST_PAUSE_S)
    return longest * _JITTER.uniform(0.5, 1.0)


def _read_reply(body: bytes) -> list[Hit]:
    """Return the hits of a reply to one query; `ValueError` if it is none."""
    reply = wire.loads(body, "reply")
    result = reply.get("result") if isinstance(reply, dict) else None
    if not isinstance(result, list) or len(result) != 1 or not isinstance(result[0], list):
        raise ValueError(f"'result' must be a list with one list of documents, got {reply!r:.80}")
    return [_read_hit(row) for row in result[0]]


def _read_hit(row: Any) -> Hit:
    """Return a hit from `{"document": {...}, "score": 1.5}`, or from a document alone."""
    if not isinstance(row, dict):
        raise ValueError(f"a document must be an object, got {row!r:.60}")
    if "document" not in row:
        return Hit(read_document(row), math.nan)
    document, score = row["document"], row.get("score")
    if not isinstance(document, dict):
        raise ValueError(f"'document' must be an object, got {document!r:.60}")
    return Hit(read_document(document), wire.decode_number(score))
