"""Requests that other sites' pages make a browser send: which are refused, which may be read."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from flask import Request, Response

from agentgyms.core.errors import BadOption
from agentgyms.remote.protocol import framing

HOSTS_VARIABLE: Final = "AGENTGYMS_ALLOWED_HOSTS"
"""Variable with further names of a server, separated by blanks."""

_MOST_KEPT: Final = 64
_PREFLIGHT: Final = {
    "Access-Control-Allow-Methods": "GET, POST, DELETE",
    "Access-Control-Allow-Headers": f"Authorization, Content-Type, {framing.PROTOCOL_HEADER}",
    "Access-Control-Max-Age": "600",
}
_READABLE: Final = f"{framing.PROTOCOL_HEADER}, Retry-After, Server-Timing"


class AllowedOrigins:
    """The sites whose pages may use this server (cross-origin resource sharing).

    Pages send the token themselves; the cookie of the page `/play` is never sent by other sites.
    Raises `BadOption` unless each origin is a scheme and a host, with a port where it is not the
    scheme's.
    """

    def __init__(self, origins: Iterable[str]) -> None:
        self._origins = frozenset(map(_check_origin, origins))

    def allow(self, request: Request) -> bool:
        """Return whether the page that sent a request is of one of the sites."""
        return request.environ.get("HTTP_ORIGIN") in self._origins

    def is_preflight(self, request: Request) -> bool:
        """Return whether a browser asks if such a page may send a request."""
        asked = request.headers.get("Access-Control-Request-Method")
        return request.method == "OPTIONS" and asked is not None and self.allow(request)

    def mark(self, request: Request, response: Response) -> None:
        """Add the headers by which a browser lets such a page read a reply."""
        if not self._origins:
            return
        response.vary.add("Origin")
        if self.allow(request):
            response.headers["Access-Control-Allow-Origin"] = request.environ["HTTP_ORIGIN"]
            response.headers["Access-Control-Expose-Headers"] = _READABLE
            if self.is_preflight(request):
                response.headers.update(_PREFLIGHT)


def _check_origin(origin: str) -> str:
    found = urlsplit(origin)
    if found.scheme not in ("http", "https") or f"{found.scheme}://{found.netloc}" != origin:
        raise BadOption(
            f"{origin!r:.80} is no origin: expected a scheme and a host, such as https://site.example"
        )
    return origin.casefold()


class OwnNames:
    """The names, in any case, at which a server without a token answers.

    Against DNS rebinding: a site whose name resolves to this server has the same origin but another
    name. Only addresses, `localhost`, names without a dot and the given ones are this server's.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(name.casefold().rstrip(".") for name in names)
        self._has = lru_cache(_MOST_KEPT)(self._includes)  # reading an address takes a while

    def mistake(self, request: Request, *, may_be_foreign: bool = False) -> str:
        """Return why a page of another site may have sent a request; "" if none has.

        With `may_be_foreign`, the site in `Origin` is an allowed one.
        """
        # Browsers name a host; it may be another site's.
        host = request.environ.get("HTTP_HOST")
        if host is not None and not self._has(f"//{host}"):
            return (
                f"this server has no token and does not know the name {request.host!r:.80}: use "
                f"its address, or start it with a token or with {HOSTS_VARIABLE}=NAME"
            )
        if not may_be_foreign and self._is_foreign(request):
            return (
                "a page of another site sent this: this server has no token, so set one, or open "
                "the page at the server's own address"
            )
        return ""

    def _is_foreign(self, request: Request) -> bool:
        """Return whether `Origin`, which only browsers send, names another site."""
        origin = request.environ.get("HTTP_ORIGIN")
        if origin is None:
            return False
        return not self._has(origin) or urlsplit(origin).netloc != request.host

    def _includes(self, address: str) -> bool:
        try:
            name = urlsplit(address).hostname or "."
        except ValueError:
            return False
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return "." not in name or name.rstrip(".") in self._names
        return True
