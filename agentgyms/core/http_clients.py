"""Trust and printing for clients of HTTP: TLS authorities, and servers' texts on a terminal."""

from __future__ import annotations

import re
import ssl
from functools import cache
from typing import Final

import certifi

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@cache
def authorities() -> ssl.SSLContext:
    """Return the TLS context that trusts the system's authorities and certifi's, made once."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context


def printable(text: str) -> str:
    r"""Return a text, such as a server's, with its control characters written as `\x1b`.

    All but `\n` and `\t`: a terminal would obey them, so they could move the cursor, hide text or
    name a link's target.
    """
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
