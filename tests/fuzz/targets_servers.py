"""Targets: what comes in at the servers, as requests of HTTP and as their bytes."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from fuzz_target import Broken, target
from targets_protocol import CORRIDOR
from waitress.adjustments import Adjustments

from agentgyms.remote.protocol import error_codes
from agentgyms.serving.channel import Parser, Terms
from agentgyms.serving.served import EXTENSION
from env_servers import create_app


def _answers(app: Any, data: bytes, session_of: Any) -> list[Any]:
    """Send the requests of an input to an application; return what it answered, in short."""
    try:
        asked = json.loads(data)
    except (ValueError, RecursionError):
        return []
    found: list[Any] = []
    session = "none"
    for request in (asked if isinstance(asked, list) else [asked])[:20]:
        match request:
            case [str(method), str(path), *rest]:
                reply = _answer(app, method, path.replace("$S", session), rest)
            case _:
                continue
        if reply is None:
            continue
        session = session_of(reply) or session
        found.append((reply.status_code, _code(reply)))
    return found


def _answer(app: Any, method: str, path: str, rest: list[Any]) -> Any:
    body = rest[0] if rest else ""
    text = body if isinstance(body, str) else json.dumps(body)
    headers = rest[1] if len(rest) > 1 and isinstance(rest[1], dict) else {}
    try:
        reply = app.test_client(use_cookies=False).open(
            path.encode("utf-8", "replace").decode() or "/",
            method=method,
            data=text.replace("$S", "none").encode("utf-8", "surrogatepass"),
            headers={"Content-Type": "application/json"} | {k: str(v) for k, v in headers.items()},
        )
    except (ValueError, UnicodeError):
        return None  # the test client itself cannot send it
    if reply.status_code == 500:
        raise Broken(f"{method} {path!r:.200} was answered with 500: {reply.get_data()!r:.300}")
    return reply


def _code(reply: Any) -> str:
    value = reply.get_json(silent=True)
    error = value.get("error") if isinstance(value, dict) else None
    if not isinstance(error, dict):
        return ""
    if reply.status_code >= 400 and error.get("code") not in error_codes.CODES:
        raise Broken(f"an error without a code: {error}")
    return str(error.get("code"))


@cache
def _app() -> Any:
    return create_app(CORRIDOR, token="", max_sessions=32, ttl_s=3600.0)


def _request_seeds() -> list[bytes]:
    session = "/v1/sessions/$S"
    play = [
        ["POST", "/v1/sessions", {"kwargs": {"max_turns": 4}, "request_id": ""}],
        ["POST", f"{session}/reset", {"seed": 3, "options": {"task_id": "train/free-036"}}],
        ["POST", f"{session}/step", {"action": "right", "turn": 1, "episode": 1}],
        ["POST", f"{session}/step", {"action": "right", "turn": 1, "episode": 1}],
        ["GET", session],
        ["POST", f"{session}/snapshot", {}],
        ["POST", f"{session}/fork", {"request_id": ""}],
        ["GET", f"{session}/trajectory?actor=me"],
        ["GET", f"{session}/render"],
        ["DELETE", session],
    ]
    pages = [
        ["GET", "/v1/info"],
        ["GET", "/v1/tasks?split=train&offset=0&limit=5&prefix=train&contains=free"],
        ["GET", "/healthz"],
        ["GET", "/play"],
        ["GET", "/openapi.json"],
        ["OPTIONS", "/v1/sessions"],
        ["POST", "/v1/sessions", "x", {"Content-Type": "text/plain", "Origin": "http://x"}],
    ]
    batch = [
        ["POST", "/v1/batch/create", {"items": [{"kwargs": {}}, {"kwargs": {"split": "x"}}]}],
        ["POST", "/v1/batch/reset", {"items": [{"session_id": "a", "seed": 1}]}],
        ["POST", "/v1/batch/step", {"items": [{"session_id": "a", "action": "x", "turn": 1}]}],
        ["POST", "/v1/batch/close", {"items": [{"session_id": "a"}]}],
    ]
    return [json.dumps(requests).encode() for requests in (play, pages, batch)]


def _opened(reply: Any) -> str | None:
    value = reply.get_json(silent=True)
    found = value.get("session_id") if isinstance(value, dict) else None
    return found if isinstance(found, str) else None


@target(seeds=_request_seeds, steps_per_byte=8_000)
def server_requests(data: bytes) -> Any:
    """No request is answered with 500, and every error has a documented code.

    Answers are not compared: a server remembers ids of requests, and draws seeds that are missing.
    """
    app = _app()
    sessions = app.extensions[EXTENSION].sessions
    try:
        return len(_answers(app, data, _opened))
    finally:
        for session_id in list(sessions._open):
            sessions.close(session_id)


def _http_seeds() -> list[bytes]:
    body = b'{"action":"right","turn":1}'
    return [
        b"POST /v1/sessions/a/step?x=1 HTTP/1.1\r\nHost: h:8\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n" % len(body) + body,
        b"GET /healthz HTTP/1.0\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4;x=1\r\nabcd\r\n0\r\nA: b\r\n\r\n",
        b"GET http://[::1]:80/%2f%00?q HTTP/1.1\r\nExpect: 100-continue\r\n\r\n",
    ]


@target(seeds=_http_seeds, kind="text")
def server_http(data: bytes) -> Any:
    """A request is read or refused, the same however its bytes are divided."""
    whole = _parsed([data])
    halves = _parsed([data[: len(data) // 2], data[len(data) // 2 :]])
    if whole != halves:
        raise Broken(f"{whole} if it comes at once, {halves} if it comes in two parts")
    return whole


def _parsed(pieces: list[bytes]) -> Any:
    terms = Terms(has_token=lambda *_: True, max_body_bytes=1 << 20)
    parser = Parser(Adjustments(), terms, lambda: None)
    for piece in pieces:
        left = piece
        while left and not parser.completed:
            taken = parser.received(left)
            if not taken and not parser.completed:
                raise Broken("the parser takes nothing and does not end")
            left = left[taken:]
    found = None
    if parser.completed and not parser.error and not parser.empty:
        length = getattr(parser.get_body_stream(), "read", lambda: b"")()
        found = parser.command, parser.path, parser.query, sorted(parser.headers.items()), length
    error = parser.error and (parser.error.code, parser.error.reason)
    parser.close()
    return parser.completed, error, found


@cache
def _search_app() -> Any:
    from agentgyms.envs.searchqa.corpus import Document
    from agentgyms.envs.searchqa.retriever import BM25Retriever
    from env_servers.retriever.app import create_retriever_app

    documents = [Document(str(i), f'"Title {i}"\nA text of number {i}.') for i in range(5)]
    return create_retriever_app(BM25Retriever(documents))


def _search_seeds() -> list[bytes]:
    asked = [
        ["POST", "/retrieve", {"queries": ["title", "text"], "topk": 3, "return_scores": True}],
        ["POST", "/retrieve", {"query": "number 3"}],
        ["GET", "/healthz"],
    ]
    return [json.dumps(asked).encode()]


@target(seeds=_search_seeds, steps_per_byte=8_000)
def search_requests(data: bytes) -> Any:
    """No search is answered with 500."""
    return _answers(_search_app(), data, lambda _: None)


@cache
def _site() -> Any:
    from agentgyms.envs.webshop.sources import open_shop
    from env_servers.webshop_site.app import Offer, create_site

    shop = open_shop().load()
    return create_site(Offer(shop, shop.goals.tasks("sample")), max_visits=10**6)


def _visit(reply: Any) -> str | None:
    parts = (reply.location or "").split("/s/")
    return parts[1].split("/")[0] if len(parts) == 2 else None


def _site_seeds() -> list[bytes]:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    asked = [
        ["GET", "/"],
        ["POST", "/s/$S/0", "query=red+lamp", form],
        ["GET", "/s/$S/1"],
        ["POST", "/s/$S/1", "at=2", form],
        ["POST", "/s/$S/2", "at=3.0", form],
        ["GET", "/s/$S/2"],
    ]
    return [json.dumps(asked).encode(), b'[["GET", "/?task_id=x"], ["GET", "/robots.txt"]]']


@target(seeds=_site_seeds, steps_per_byte=20_000)
def site_requests(data: bytes) -> Any:
    """No request to the shop's web site is answered with 500; its tasks are drawn by chance."""
    app = _site()
    try:
        _answers(app, data, _visit)
    finally:
        app.extensions[EXTENSION].sessions.close_all()
