"""Addresses and trust of HTTP's clients, and servers' texts on a terminal."""

from __future__ import annotations

import importlib.util
import os
import re
import socket
import ssl
from collections.abc import Sequence
from functools import cache
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

import certifi

from agentgyms.core.errors import BadOption

_PROXIES: Final = ("http_proxy", "https_proxy", "all_proxy")
_PROXY_SCHEMES: Final = ("http", "https", "socks5", "socks5h")

_PROBE_S: Final = 2.0
"""Seconds for each step of finding out which scheme a server speaks."""

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def parse_address(
    text: Any, schemes: Sequence[str] = ("http", "https"), *, with_query: bool = False
) -> SplitResult:
    """Return the parts of a server's address; `geturl()` gives it in the form to be used.

    Blanks around it and a slash at its end are left out, its scheme is in lower case. Raises
    `ValueError` with what is wrong, without the address, which may hold secrets.
    """
    given = text.strip() if isinstance(text, str) else ""
    scheme, separator, rest = given.partition("://")
    if not separator or scheme.lower() not in schemes:
        raise ValueError(f"it begins with none of {', '.join(f'{one}://' for one in schemes)}")
    if re.search(r"[\s\x00-\x1f\x7f-\x9f]", given):
        raise ValueError("it has a blank or a control character in it")
    if "#" in rest:
        raise ValueError("it has a fragment: leave out '#' and what is after it")
    if "?" in rest and not with_query:
        raise ValueError("it has a query: leave out '?' and what is after it")
    try:
        parts = urlsplit(f"{scheme.lower()}://{rest}")
        port = parts.port
        host = (parts.hostname or "").encode("idna")
    except (ValueError, UnicodeError) as e:
        raise ValueError(f"its host or port is wrong: {_reason(e)}") from None
    if not host or port == 0:
        raise ValueError("it names no host" if not host else "its port is 0")
    return parts if with_query else parts._replace(path=parts.path.rstrip("/"))


def _reason(error: ValueError) -> str:
    """Return what is wrong with a host or a port, without the text itself."""
    if isinstance(error, UnicodeError):
        return "no name of a host"
    return "no port" if "port" in str(error).lower() else "no host"


def check_proxies() -> None:
    """Raise `BadOption`, with the variable's name, if an address of a proxy cannot be used."""
    for name in (spelled for proxy in _PROXIES for spelled in (proxy, proxy.upper())):
        value = os.environ.get(name, "").strip()
        if not value:
            continue
        try:
            parts = parse_address(value if "://" in value else f"http://{value}", _PROXY_SCHEMES)
        except ValueError as e:
            raise BadOption(
                f"the variable {name} is no address of a proxy ({e}): expected one such as "
                f"http://proxy.example:3128, or unset {name}"
            ) from None
        if parts.scheme.startswith("socks") and importlib.util.find_spec("socksio") is None:
            raise BadOption(
                f"the variable {name} names a SOCKS proxy, which needs `pip install socksio`: "
                f"install that, or unset {name}"
            )


@cache
def authorities() -> ssl.SSLContext:
    """Return the TLS context that trusts the system's authorities and certifi's, made once."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context


def wrong_scheme(scheme: str, host: str, port: int) -> str:
    """Return what is wrong if a server that did not reply speaks the other scheme, else ""."""
    if scheme == "https" and _answers_plainly(host, port):
        return "it speaks HTTP without TLS: write http://, not https://"
    if scheme == "http" and _speaks_tls(host, port):
        return "it speaks TLS: write https://, not http://"
    return ""


def _answers_plainly(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), _PROBE_S) as plain:
            plain.sendall(b"HEAD / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return plain.recv(5) == b"HTTP/"
    except OSError:
        return False


def _speaks_tls(host: str, port: int) -> bool:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # nothing is sent, so nobody need be known
    try:
        with (
            socket.create_connection((host, port), _PROBE_S) as plain,
            context.wrap_socket(plain, server_hostname=host),
        ):
            return True
    except (OSError, ValueError):
        return False


def printable(text: str) -> str:
    r"""Return a text with control characters but `\n` and `\t` escaped: a terminal obeys them."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
