"""Requests that other sites' pages make a browser send to a server that asks for no token."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from flask import Request


def is_foreign(asked: Request) -> bool:
    """Return whether a page made this request that is not a page of this server.

    Browsers name the page's site in `Origin` wherever a request may change something; other clients
    send none. A site whose name is made to resolve to this server (DNS rebinding) has the same
    origin as the server, but a name of its own: only addresses, `localhost` and names without a dot
    are taken for this server's.
    """
    origin = asked.headers.get("Origin")
    if origin is None:
        return False
    try:
        site = urlsplit(origin)
        return site.netloc != asked.host or not _is_local(site.hostname or ".")
    except ValueError:
        return True


def _is_local(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return "." not in name
    return True
