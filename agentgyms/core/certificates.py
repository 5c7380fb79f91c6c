"""Certificate authorities that clients trust: those of the system, and those of certifi."""

from __future__ import annotations

import ssl
from functools import cache

import certifi


@cache
def authorities() -> ssl.SSLContext:
    """Return the context for TLS, made once: reading the certificates takes long."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context
