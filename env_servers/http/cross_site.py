"""Requests that other sites' pages make a browser send to a server that asks for no token."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from flask import Request

_MOST_KEPT: Final = 64


class OwnNames:
    """The names at which a server without a token answers.

    A site whose name is made to resolve to this server (DNS rebinding) has the same origin as the
    server, but a name of its own: only addresses, `localhost`, names without a dot and those given
    are taken for this server's.

    Args:
        names: More names of the server, in any case.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(name.casefold().rstrip(".") for name in names)
        self._has = lru_cache(_MOST_KEPT)(self._includes)  # reading an address takes a while

    def mistake(self, request: Request) -> str:
        """Return why a page of another site may have sent a request; "" if none has."""
        if self._is_rebound(request):
            return (
                f"this server has no token and does not know the name {request.host!r:.80}: use "
                "its address, or start it with a token or with --allow-host NAME"
            )
        if self._is_foreign(request):
            return (
                "a page of another site sent this: this server has no token, so set one, or open "
                "the page at the server's own address"
            )
        return ""

    def _is_rebound(self, request: Request) -> bool:
        """Return whether a request names a host that may be another site's; browsers name one."""
        host = request.environ.get("HTTP_HOST")
        return host is not None and not self._has(f"//{host}")

    def _is_foreign(self, request: Request) -> bool:
        """Return whether a page that is not of this server made this request.

        Browsers name the page's site in `Origin` wherever a request may change something; other
        clients send none.
        """
        origin = request.environ.get("HTTP_ORIGIN")
        if origin is None:
            return False
        return not self._has(origin) or urlsplit(origin).netloc != request.host

    def _includes(self, address: str) -> bool:
        """Return whether the host of an address is one of the names."""
        try:
            name = urlsplit(address).hostname or "."
        except ValueError:
            return False
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return "." not in name or name.rstrip(".") in self._names
        return True
