"""Checks the address and the key of a server of models before any request."""

from __future__ import annotations

import ipaddress
from typing import Final

import httpx2

from agentgyms.core.errors import BadOption
from agentgyms.models.types import SETTING_NAMES, SettingNames

_PATHS: Final = ("/chat/completions", "/models")


def base_url(url: str, names: SettingNames = SETTING_NAMES) -> str:
    """Return the base URL of the API; `/v1` is added if there is no path.

    Raises `BadOption` for what is not the address of a server, or contains a user name, password or
    query, which may be secrets. The message never repeats the address: it might be the key.
    """
    example = "expected one such as http://127.0.0.1:8000/v1"
    try:
        parsed = httpx2.URL(url.strip())
    except (httpx2.InvalidURL, TypeError, AttributeError, UnicodeEncodeError):
        raise BadOption(f"{names.model}url is no address: {example}") from None
    if parsed.userinfo or parsed.query or parsed.fragment:
        raise BadOption(
            f"{names.model}url has more than a server and a path: {example}, and the key in the "
            f"environment variable that {names.model}key_variable names"
        )
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise BadOption(f"{names.model}url is no address of a server: {example}")
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


def check_key(key: str | None, names: SettingNames = SETTING_NAMES) -> str:
    """Return the key without surrounding spaces, "" for None.

    Raises `BadOption`, without the key in it, for characters that are invalid in a header.
    """
    key = (key or "").strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise BadOption(
            "the model's key has characters that no key has: check the environment variable that "
            f"{names.model}key_variable names"
        )
    return key
