"""Addresses to listen on: which of them other machines can reach."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a server bound to `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def open_to_others(host: str, token: str, variable: str, otherwise: str = "") -> str:
    """Return why a server must not listen on `host` with `token`; "" if it may.

    `variable` holds the token; `otherwise` names another way out.
    """
    if token.strip() or is_loopback(host):
        return ""
    return (
        f"{host} can be reached from other machines, and there is no token: set {variable}"
        f"{', ' if otherwise else ' or '}listen on 127.0.0.1{otherwise}"
    )
