"""JSON requests to other paths of a server of models than chat completions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import httpx2

from agentgyms.core.errors import ServerUnavailable
from agentgyms.models.endpoint import proxied, scheme_mistake
from agentgyms.models.error_replies import classify_error
from agentgyms.models.rate_limit import Attempt
from agentgyms.models.replies import parse_json, read_body

_CONNECT_S: Final = 10.0
_IDLE_S: Final = 3.0  # shorter than servers keep idle connections


def exchange(
    method: str,
    url: str,
    body: Mapping[str, Any] | None = None,
    *,
    headers: Mapping[str, str] | None = None,
    connect_s: float = _CONNECT_S,
    timeout_s: float,
) -> tuple[int, str]:
    """Return status and text of the reply to a request that blocks; redirections are followed.

    `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` are obeyed, except for servers on this machine.
    Raises `ServerUnavailable` if it takes longer than `connect_s` to connect or stays silent for
    `timeout_s`.
    """
    try:
        proxies = proxied(url)
        with httpx2.Client(
            follow_redirects=True,
            timeout=httpx2.Timeout(timeout_s, connect=connect_s),
            trust_env=proxies,
            verify=proxies or not url.startswith("http:"),
        ) as client:
            reply = client.request(method, url, json=body, headers=headers)
    except (httpx2.HTTPError, httpx2.InvalidURL) as e:
        mistake = scheme_mistake(e) if isinstance(e, httpx2.HTTPError) else ""
        raise ServerUnavailable(mistake or str(e) or type(e).__name__) from e
    return reply.status_code, reply.text


class JsonPoster:
    """Sends JSON requests to paths below one server's `url`, in one event loop.

    `timeout_s` is the longest time without data. Proxies count as in `exchange`.
    """

    def __init__(self, url: str, headers: Mapping[str, str], timeout_s: float) -> None:
        self._url, self._timeout_s, self._has_answered = url, timeout_s, False
        proxies = proxied(url)
        self._client = httpx2.AsyncClient(
            headers={"Content-Type": "application/json", **headers},
            timeout=httpx2.Timeout(timeout_s, connect=min(_CONNECT_S, timeout_s), pool=None),
            limits=httpx2.Limits(max_connections=None, keepalive_expiry=_IDLE_S),
            trust_env=proxies,
            verify=proxies or not url.startswith("http:"),
        )

    async def post(self, path: str, body: Mapping[str, Any], longest: int) -> Any:
        """Return the JSON of the answer, of at most `longest` bytes.

        Raises `RetryableError`, or `RequestRejected` if the server rejects the request.
        """
        sent = self._client.stream("POST", self._url + path, content=json.dumps(body))
        attempt = Attempt(self._timeout_s, has_answered=self._has_answered)
        async with attempt, sent as response:
            self._has_answered = True
            reply = parse_json(await read_body(response, longest))
        if response.status_code != 200:
            raise classify_error(response.status_code, reply, response.headers)
        return reply

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()
