"""Canonical keys: blake2b of 16 bytes in hex, equal on every machine and in every process."""

from __future__ import annotations

import json
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final

_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode

_SHORT: Final = 512
"""The longest text whose digest is kept for when it comes again: small games repeat theirs."""

INVALID_ACTION: Final = "<invalid>"
"""`action_key` of an action that matches no admissible one."""


def digest(text: str) -> str:
    """Return the digest of `text`, 32 hex characters. Lone surrogates are allowed."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


@lru_cache(maxsize=1024)
def _kept_digest(text: str) -> str:
    return digest(text)


def state_key(*parts: Any) -> str:
    """Return the key of a state described by JSON-plain `parts`; raise `TypeError` for other parts.

    The order of lists counts, the order of dictionaries does not. Pass sets as sorted lists.
    """
    return digest(_canonical(parts))


def coded(part: Any) -> str:
    """Return a part of a state as `state_key` digests it; for `coded_key`."""
    return _canonical(part)


def coded_key(*coded_parts: str) -> str:
    """Return the `state_key` of parts, each as `coded` returns it: some may be coded only once."""
    return digest(f"[{','.join(coded_parts)}]")


def observation_key(observation: Any) -> str:
    """Return the key of what the agent sees: a string, or a dictionary of strings and arrays."""
    if isinstance(observation, str):
        return (_kept_digest if len(observation) <= _SHORT else digest)(observation)
    h = blake2b(digest_size=16)
    for name in sorted(observation):
        part = observation[name]
        h.update(name.encode() + b"\0")
        if isinstance(part, str):
            h.update(part.encode("utf-8", "surrogatepass") + b"\0")
        else:
            h.update(repr((part.shape, part.dtype.str)).encode() + part.tobytes())
    return h.hexdigest()
