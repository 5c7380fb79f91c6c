"""Addresses that a gateway listens on."""

from __future__ import annotations

import ipaddress

from harness.types.errors import ConfigError


def read_address(text: str) -> tuple[str, int]:
    """Return the host and port of an address such as `127.0.0.1:8600`, or raise `ConfigError`."""
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise ConfigError(
            f"rollout.gateway must be HOST:PORT, such as 127.0.0.1:8600, got {text!r}"
        )
    return host, int(port)


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches a host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
