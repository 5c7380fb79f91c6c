"""A retriever on a server: Search-R1's, SkyRL's and verl-agent's requests, and ours."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from agentgyms import protocol, wire
from agentgyms.errors import BadOption, BadRequest, ServerUnavailable
from agentgyms.remote.endpoint import Patience
from agentgyms.remote.transport import HttpTransport, Reply
from agentgyms.searchqa.corpus import read_document
from agentgyms.searchqa.retriever import Hit

TOKEN_VARIABLE: Final = "AGENTGYMS_RETRIEVER_TOKEN"  # noqa: S105
"""Where the bearer token is; another one than the environments', which others must not get."""

REQUEST_FORMS: Final = ("queries", "query")

_PATIENCE: Final = Patience(connect_s=5, read_s=60, attempts=6, pause_s=0.25)
_CACHED_QUERIES: Final = 1024


class HttpRetriever:
    """Searches with POST requests; a query that was asked before is answered from a cache.

    Args:
        url: The whole address, such as `http://host:8000/retrieve`.
        request_form: `"queries"` sends `{"queries": [q], "topk": k, "return_scores": true}`, which
            Search-R1's server reads, `"query"` sends `{"query": q, ...}`, which that of SkyRL and
            verl-agent reads. `python -m env_servers.retriever` reads both.
        patience: How long to wait and how often to ask. A request without a reply, or with one of
            status 429 or 5xx, is sent again.

    Raises:
        BadOption: The address is none, or the form is unknown.
    """

    def __init__(
        self, url: str, *, request_form: str = "queries", patience: Patience | None = None
    ) -> None:
        if not isinstance(url, str) or not url.startswith(("http://", "https://")):
            raise BadOption(
                f"retriever {url!r} is no address: expected one such as http://host:8000/retrieve"
            )
        if request_form not in REQUEST_FORMS:
            raise BadOption(
                f"request_form {request_form!r} is unknown: expected 'queries' or 'query'"
            )
        self._url, self._form, self._patience = url, request_form, patience or _PATIENCE
        token = protocol.check_token(os.environ.get(TOKEN_VARIABLE, ""))
        self._headers = {"Content-Type": "application/json"}
        self._headers |= {"Authorization": f"Bearer {token}"} if token else {}
        self._transport = HttpTransport()
        self._find = lru_cache(_CACHED_QUERIES)(self._ask)

    def search(self, query: str, top_k: int) -> Sequence[Hit]:
        """Return what the server finds; see `Retriever`.

        Raises:
            ServerUnavailable: No attempt got an answer, or it is none of a retriever.
        """
        return self._find(query, top_k)

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()

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
        reason = ""
        for attempt in range(self._patience.attempts):
            if attempt:
                time.sleep(self._patience.pause(attempt - 1))
            try:
                reply = self._transport.send(
                    "POST",
                    self._url,
                    headers=self._headers,
                    body=body,
                    timeout_s=(self._patience.connect_s, self._patience.read_s),
                )
            except ServerUnavailable as e:
                reason = str(e)
                continue
            if reply.status == 200:
                return reply
            reason = f"status {reply.status}"
            if reply.status < 500 and reply.status != 429:
                raise ServerUnavailable(
                    f"{self._url} refused a search ({reason}): check the address, request_form "
                    f"(now {self._form!r}) and the token in {TOKEN_VARIABLE}"
                )
        raise ServerUnavailable(
            f"no retriever answers at {self._url} ({reason}, {self._patience.attempts} attempts); "
            "start one with: python -m env_servers.retriever"
        )


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
