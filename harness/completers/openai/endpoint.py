"""The address of a server of models and the key to it, checked before anything is sent."""

from __future__ import annotations

import ipaddress
from typing import Final

import httpx2

from harness.errors import ConfigError

_PATHS: Final = ("/chat/completions", "/models")


def base_of(url: str) -> str:
    """Return the address that paths are appended to; `/v1` is added where there is no path.

    Raises:
        ConfigError: It is no address of a server, or one with a name, password or query in it,
            which may be secrets.
    """
    example = "expected one such as http://127.0.0.1:8000/v1"
    try:
        parsed = httpx2.URL(url.strip())
    except (httpx2.InvalidURL, TypeError, AttributeError):
        raise ConfigError(f"model.url {url!r} is no address: {example}") from None
    if parsed.userinfo or parsed.query or parsed.fragment:
        raise ConfigError(
            f"model.url has more than a server and a path: {example}, and the key in the "
            "environment variable that model.key_variable names"
        )
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ConfigError(f"model.url {url!r} is no address of a server: {example}")
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


def checked_key(key: str | None) -> str:
    """Return the key without space around it, "" for none.

    Raises:
        ConfigError: It has characters that no header may hold; the message does not show it.
    """
    key = (key or "").strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigError(
            "the model's key has characters that no key has: check the environment variable that "
            "model.key_variable names"
        )
    return key
