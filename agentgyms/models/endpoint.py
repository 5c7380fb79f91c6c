"""Checks the address and the key of a server of models before any request."""

from __future__ import annotations

import ipaddress
from typing import Final
from urllib.request import getproxies

import httpx2

from agentgyms.core.errors import BadOption
from agentgyms.core.http_clients import check_proxies, parse_address, wrong_scheme
from agentgyms.models.types import SETTING_NAMES, SettingNames

_PATHS: Final = ("/chat/completions", "/models")


def base_url(url: str, names: SettingNames = SETTING_NAMES) -> str:
    """Return the base URL of the API; `/v1` is added if there is no path.

    Raises `BadOption` for what is not the address of a server, or contains a user name, password or
    query, which may be secrets. The message never repeats the address: it might be the key.
    """
    example = "expected one such as http://127.0.0.1:8000/v1"
    try:
        parts = parse_address(url, with_query=True)
        parsed = httpx2.URL(parts.geturl())
    except ValueError as e:
        raise BadOption(f"{names.model}url is no address of a server ({e}): {example}") from None
    except httpx2.InvalidURL:
        raise BadOption(f"{names.model}url is no address of a server: {example}") from None
    if parsed.userinfo or parsed.query:
        raise BadOption(
            f"{names.model}url has more than a server and a path: {example}, and the key in the "
            f"environment variable that {names.model}key_variable names"
        )
    path = parsed.path.rstrip("/")
    for ending in _PATHS:
        path = path.removesuffix(ending)
    return str(parsed.copy_with(path=path or "/v1"))


def proxied(url: str) -> bool:
    """Return whether proxies' variables count: not on this machine; `BadOption` if one is wrong."""
    local = is_loopback(url)
    if not local:
        check_proxies()
    return not local


def scheme_mistake(error: httpx2.HTTPError) -> str:
    """Return why an address has the wrong scheme, or ""; without a proxy, connect to find out."""
    url = error.request.url
    kinds = {
        "https": (httpx2.ConnectError, httpx2.ConnectTimeout),
        "http": (httpx2.ReadError, httpx2.WriteError, httpx2.RemoteProtocolError),
    }
    if not isinstance(error, kinds.get(url.scheme, ())):
        return ""
    if getproxies() and not is_loopback(str(url)):
        return ""
    port = url.port or (443 if url.scheme == "https" else 80)
    mistake = wrong_scheme(url.scheme, url.host, port)
    return mistake and f"no answer from {url.scheme}://{url.host}:{port}: {mistake}"


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
