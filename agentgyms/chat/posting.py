"""JSON requests to a server of models by addresses other than chat completions, many at once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import httpx2

from agentgyms.chat.endpoint import is_loopback
from agentgyms.chat.refusals import judge
from agentgyms.chat.replies import parsed, read_body
from agentgyms.chat.service import Attempt

_CONNECT_S: Final = 10.0
_IDLE_S: Final = 3.0  # less than servers keep a connection that nobody uses


class JsonPoster:
    """Posts JSON to one server, in one event loop.

    `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` are obeyed, except for servers on this machine.

    Args:
        url: Of the server; paths are appended to it.
        headers: Of every request.
        timeout_s: Longest silence.
    """

    def __init__(self, url: str, headers: Mapping[str, str], timeout_s: float) -> None:
        """Connect to nothing yet."""
        self._url, self._timeout_s = url, timeout_s
        local = is_loopback(url)
        self._client = httpx2.AsyncClient(
            headers={"Content-Type": "application/json", **headers},
            timeout=httpx2.Timeout(timeout_s, connect=_CONNECT_S, pool=None),
            limits=httpx2.Limits(max_connections=None, keepalive_expiry=_IDLE_S),
            trust_env=not local,
            verify=not (local and url.startswith("http:")),
        )

    async def post(self, path: str, body: Mapping[str, Any], longest: int) -> Any:
        """Return the JSON of an answer of at most so many bytes.

        Raises:
            Fault: There is none; another attempt may bring one.
            Refused: The server does not take the request.
        """
        sent = self._client.stream("POST", self._url + path, content=json.dumps(body))
        async with Attempt(self._timeout_s), sent as response:
            told = parsed(await read_body(response, longest))
        if response.status_code != 200:
            raise judge(response.status_code, told, response.headers)
        return told

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()
