"""The address of a server of models and the key to it, checked before anything is sent."""

from __future__ import annotations

import ipaddress
from typing import Final

import httpx2

from agentgyms.chat.terms import TERMS, Terms
from agentgyms.errors import BadOption

_PATHS: Final = ("/chat/completions", "/models")


def base_of(url: str, terms: Terms = TERMS) -> str:
    """Return the address that paths are appended to; `/v1` is added where there is no path.

    Raises:
        BadOption: It is no address of a server, or one with a name, password or query in it,
            which may be secrets. No wrong address is repeated: it might be the key.
    """
    example = "expected one such as http://127.0.0.1:8000/v1"
    try:
        parsed = httpx2.URL(url.strip())
    except (httpx2.InvalidURL, TypeError, AttributeError):
        raise BadOption(f"{terms.model}url is no address: {example}") from None
    if parsed.userinfo or parsed.query or parsed.fragment:
        raise BadOption(
            f"{terms.model}url has more than a server and a path: {example}, and the key in the "
            f"environment variable that {terms.model}key_variable names"
        )
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise BadOption(f"{terms.model}url is no address of a server: {example}")
    path = parsed.path.rstrip("/")
    for ending in _PATHS:
        path = path.removesuffix(ending)
    return str(parsed.copy_with(path=path or "/v1"))


def is_loopback(url: str) -> bool:
    """Return whether the address is on this machine."""
    host = httpx2.URL(url).host
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def checked_key(key: str | None, terms: Terms = TERMS) -> str:
    """Return the key without space around it, "" for none.

    Raises:
        BadOption: It has characters that no header may hold; the message does not show it.
    """
    key = (key or "").strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise BadOption(
            "the model's key has characters that no key has: check the environment variable that "
            f"{terms.model}key_variable names"
        )
    return key
