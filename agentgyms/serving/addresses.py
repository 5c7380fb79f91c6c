"""Addresses to listen on: which of them other machines can reach."""

from __future__ import annotations

import ipaddress

from agentgyms.core.errors import BadOption


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a server bound to `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_reach(host: str, token: str, variable: str, otherwise: str = "") -> None:
    """Raise `BadOption` if other machines could reach a server on `host` without a token.

    `variable` holds the token; `otherwise` names another way out.
    """
    if not token.strip() and not is_loopback(host):
        raise BadOption(
            f"{host} can be reached from other machines, and there is no token: set {variable}, "
            f"{otherwise}or listen on 127.0.0.1"
        )
