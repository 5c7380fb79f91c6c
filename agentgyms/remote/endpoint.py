"""One address of a server: calls with retries, errors as exceptions, batches of any size."""

from __future__ import annotations

import contextlib
import copy
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from agentgyms.core import serialization, tracing
from agentgyms.core.errors import (
    BadOption,
    BadRequest,
    ServerFull,
    ServerUnavailable,
    SessionLost,
    Unauthorized,
)
from agentgyms.core.http_clients import parse_address, printable
from agentgyms.remote.patience import Patience
from agentgyms.remote.protocol import error_codes, framing, messages
from agentgyms.remote.ray_actors import SCHEME
from agentgyms.remote.transport import Reply, Transport, WrongScheme

_SCHEMES: Final = ("http", "https", SCHEME.removesuffix("://"))
_GATEWAY_FAILED: Final = (502, 503, 504)
_BATCH_FRAME_BYTES: Final = 64
_REST_S: Final = 5.0
_SHORTEST_WAIT_S: Final = 0.1
_CLOSE_TIMEOUT_S: Final = (1.0, 2.0)
_SERVER_ERRORS: Final = (ServerFull, ServerUnavailable, SessionLost, Unauthorized)
"""Errors that a local environment does not raise: their text names the server."""


class NoAnswer(ServerUnavailable):
    """No server answers: `tried` says where, why and how long, `remedy` what to do."""

    def __init__(self, tried: str, remedy: str) -> None:
        super().__init__(f"no server answers at {tried}; {remedy}")
        self.tried, self.remedy = tried, remedy


class UnreadableReply(ServerUnavailable):
    """A server of this package sent a reply that this client cannot read; a retry cannot help."""


class Endpoint:
    """One address, for which an environment's server is expected; `BadOption` if it is none.

    The transport is closed by its owner. `self.url` has no user name and password.
    """

    def __init__(
        self, url: str, env_id: str, token: str, transport: Transport, patience: Patience
    ) -> None:
        try:
            self._address = parse_address(url, _SCHEMES).geturl()
        except ValueError as e:
            raise BadOption(
                f"url {url!r} is no address ({e}): expected one such as http://host:8001, or "
                "ray://16 for 16 actors of a Ray cluster"
            ) from None
        self.url = _without_account(self._address)
        self.env_id, self.token, self.transport, self.patience = env_id, token, transport, patience
        self._headers = {
            framing.PROTOCOL_HEADER: framing.PROTOCOL,
            "Content-Type": "application/json",
        }
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._limits: dict[str, Any] | None = None  # the server's, once `greet` has fetched them
        self._rests_until = 0.0

    @property
    def resting(self) -> bool:
        """Whether the last call failed less than 5 s ago: another address is better."""
        return time.monotonic() < self._rests_until

    @property
    def num_places(self) -> int:
        """How many sessions the server holds at a time; 0 before it was greeted."""
        return int((self._limits or {}).get("max_sessions", 0))

    def clone(self) -> Endpoint:
        """Return the same address for another thread."""
        twin = copy.copy(self)
        twin.transport, twin._rests_until = self.transport.clone(), 0.0
        return twin

    def greet(self) -> None:
        """Check, once, that the server serves the environment; raise `BadOption` if not."""
        if self._limits is not None:
            return
        info = self.read(messages.Info, self.call("GET", "/v1/info"))
        if info.env_id != self.env_id.rpartition(":")[2]:  # an actor imports the module before it
            raise BadOption(
                f"the server at {self.url} serves {printable(info.env_id)}, not {self.env_id}: "
                "check url="
            )
        self._limits = asdict(self.read(messages.Limits, info.limits))

    def call(self, method: str, path: str, message: Mapping[str, Any] | None = None) -> Any:
        """Return the JSON value of the server's reply; without a reply the request is sent again.

        Raises the server's own error as its class, `BadRequest` if the message is too long for it,
        `ServerUnavailable` if no attempt got a reply of the protocol.
        """
        return self._ask(
            method, path, None if message is None else serialization.dumps(message).encode()
        )

    def _ask(self, method: str, path: str, body: bytes | None) -> Any:
        if body is not None and len(body) > self._limit("max_body_bytes"):
            raise BadRequest(
                f"the message to {path} has {len(body)} bytes, the server takes "
                f"{self._limit('max_body_bytes')}: send less, or start it with a larger --max-body"
            )
        return self._answer(self._send(method, path, body), path)

    def batch(self, operation: str, items: Sequence[Mapping[str, Any]]) -> list[Any]:
        """Return the result of every item, or the exception that stands for its error."""
        results: list[Any] = []
        for chunk in self._chunks(items):
            reply = self._ask("POST", f"/v1/batch/{operation}", _batch_of(chunk))
            answers = reply.get("results") if isinstance(reply, dict) else None
            if not isinstance(answers, list) or len(answers) != len(chunk):
                raise self._wrong_server_error(
                    f"a batch of {len(chunk)} items was answered with {reply!r:.80}"
                )
            results += [self._error(answer, 0) or answer for answer in answers]
        return results

    def dismiss(self, path: str) -> None:
        """Delete what is at `path`, in one attempt; failures are ignored."""
        self._send_and_ignore("DELETE", path, None)

    def dismiss_all(self, session_ids: Sequence[str]) -> None:
        """Close sessions in one call; failures are ignored."""
        for items in self._chunks([{"session_id": session_id} for session_id in session_ids]):
            self._send_and_ignore("POST", "/v1/batch/close", _batch_of(items))

    def _send_and_ignore(self, method: str, path: str, body: bytes | None) -> None:
        with contextlib.suppress(ServerUnavailable):
            self.transport.send(
                method,
                self._address + path,
                headers=self._headers,
                body=body,
                timeout_s=_CLOSE_TIMEOUT_S,
            )

    def read(self, kind: type[framing.M], value: Any) -> framing.M:
        """Return the message that a reply holds; raise `UnreadableReply` if it holds none."""
        with self.reading():
            return framing.read_reply(kind, value, "reply")

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Raise `UnreadableReply` where reading a reply raises `BadRequest`."""
        try:
            yield
        except BadRequest as e:
            raise self._wrong_server_error(str(e), UnreadableReply) from None

    def _limit(self, name: str) -> int:
        return int((self._limits or {}).get(name, framing.MAX_BODY_BYTES))

    def _chunks(self, items: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
        """Yield the items, as JSON, in as few batches as the server's limits allow."""
        most_bytes, most_items = self._limit("max_body_bytes"), self._limit("max_batch")
        chunk: list[str] = []
        length = _BATCH_FRAME_BYTES
        for item in map(serialization.dumps, items):
            size = len(item) + 1
            if chunk and (length + size > most_bytes or len(chunk) >= most_items):
                yield chunk
                chunk, length = [], _BATCH_FRAME_BYTES
            chunk.append(item)
            length += size
        if chunk:
            yield chunk

    def _send(self, method: str, path: str, body: bytes | None) -> Reply:
        begun = time.monotonic()
        reason, wait_s = "", 0.0
        for attempt in range(self.patience.attempts):
            if attempt:
                time.sleep(max(self.patience.pause(attempt - 1), wait_s))
            last = attempt == self.patience.attempts - 1
            wait_s = 0.0
            try:
                reply = self.transport.send(
                    method,
                    self._address + path,
                    headers={**self._headers, **tracing.headers()},
                    body=body,
                    timeout_s=(self.patience.connect_s, self.patience.read_s),
                )
            except WrongScheme as e:  # it will speak it no sooner
                reason, _, remedy = str(e).partition(": ")
                raise NoAnswer(f"{self.url} ({reason})", remedy) from None
            except ServerUnavailable as e:
                reason = str(e)
            else:
                wait_s = _overloaded_for_s(reply)
                reason = "" if wait_s and last else _reason_to_retry(reply)
                if not reason:
                    return reply
            if time.monotonic() >= begun + self.patience.read_s:
                break
        self._rests_until = time.monotonic() + _REST_S
        tried = f"{self.url} ({reason}; tried for {time.monotonic() - begun:.1f} s)"
        raise NoAnswer(tried, self._remedy())

    def _remedy(self) -> str:
        if self.url.startswith(SCHEME):
            return "`ray status` shows whether the cluster has CPUs for it, `ray logs` why it died"
        port = self.url.rpartition(":")[2]
        port = port if port.isdecimal() else "8000"
        known = ":" in self.env_id or self.env_id.startswith("agentgyms/")
        module = "" if known else "MODULE:"
        return f"start one with: python -m env_servers {module}{self.env_id} --port {port}"

    def _answer(self, reply: Reply, path: str) -> Any:
        if reply.status == 204:
            return None
        try:
            value = serialization.loads(reply.body, "reply")
        except BadRequest:
            value = None
        if reply.status >= 400:
            error = self._error(value, reply.status)
            if isinstance(error, ServerFull):
                error.retry_after_s = _retry_after(reply)
            raise error or self._wrong_server_error(f"status {reply.status} to {path}")
        spoken = reply.headers.get(framing.PROTOCOL_HEADER)
        if spoken != framing.PROTOCOL or value is None:
            raise self._wrong_server_error(
                f"protocol {spoken!r} where this client speaks {framing.PROTOCOL}"
            )
        return value

    def _error(self, value: Any, status: int) -> Exception | None:
        """Return the exception that an error body stands for; None for any other body."""
        error = value.get("error") if isinstance(value, dict) else None
        if not isinstance(error, dict):
            return None
        code, message = str(error.get("code")), printable(str(error.get("message")))
        found = error_codes.exception(code, message, status)
        if isinstance(found, _SERVER_ERRORS):
            return type(found)(f"{self.url}: {message}; {printable(str(error.get('hint')))}")
        return found

    def _wrong_server_error(
        self, what: str, kind: type[ServerUnavailable] = ServerUnavailable
    ) -> ServerUnavailable:
        return kind(
            f"{self.url} does not answer as a server of agentgyms does: {what}; check the address, "
            "and that both sides have the same version of agentgyms"
        )


def _without_account(address: str) -> str:
    scheme, slashes, rest = address.partition("://")
    place, slash, path = rest.partition("/")
    return f"{scheme}{slashes}{place.rpartition('@')[2]}{slash}{path}"


def _batch_of(items: Sequence[str]) -> bytes:
    return f'{{"items":[{",".join(items)}]}}'.encode()


def _reason_to_retry(reply: Reply) -> str:
    """Return why the request should be sent again, or "" if the reply is final."""
    if reply.status not in _GATEWAY_FAILED:
        return ""
    if framing.PROTOCOL_HEADER not in reply.headers:
        return f"status {reply.status} from something before it"
    if _overloaded_for_s(reply):
        return "it was overloaded"
    return "it was too busy" if reply.status == 504 else ""


def _overloaded_for_s(reply: Reply) -> float:
    """Return after how many seconds an overloaded server wants the request again, else 0."""
    ours = reply.status == 503 and framing.PROTOCOL_HEADER in reply.headers
    return min(_retry_after(reply), _REST_S) if ours and "Retry-After" in reply.headers else 0.0


def _retry_after(reply: Reply) -> float:
    """Return the seconds in `Retry-After`; 1 if it is missing or invalid."""
    try:
        seconds = float(reply.headers.get("Retry-After", "1"))
    except ValueError:
        return 1.0
    return max(seconds, _SHORTEST_WAIT_S) if math.isfinite(seconds) and seconds >= 0 else 1.0
