"""Observations and infos as strict JSON, for the server, recordings and snapshots alike.

JSON has no nan, so unknown numbers travel as null; which fields are numbers is known by name.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from agentgyms.errors import BadRequest

_FLOAT_FIELDS = ("progress", "score")


def dumps(value: Any) -> str:
    """Return `value` as one line of strict, ASCII-only JSON.

    Raises:
        ValueError: It holds nan or an infinity outside the fields `encode_info` takes care of.
    """
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def loads(text: str | bytes, what: str = "message") -> Any:
    """Return the value of a JSON text.

    Raises:
        BadRequest: It is not strict JSON; `what` names it in the message.
    """
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as e:
        raise BadRequest(f"the {what} is not valid JSON: {e}") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def encode_number(value: float) -> float | None:
    """Return a number, or None for one that JSON cannot hold."""
    return value if math.isfinite(value) else None


def decode_number(value: float | None) -> float:
    """Return what `encode_number` was given, with None as nan."""
    return math.nan if value is None else float(value)


def encode_info(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return `info` with nan as None."""
    encoded = dict(info)
    for name in _FLOAT_FIELDS:
        if name in encoded:
            encoded[name] = encode_number(encoded[name])
    encoded["metrics"] = {k: encode_number(v) for k, v in info.get("metrics", {}).items()}
    return encoded


def decode_info(encoded: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `info` that `encode_info` was given."""
    info = dict(encoded)
    for name in _FLOAT_FIELDS:
        if name in info:
            info[name] = decode_number(info[name])
    info["metrics"] = {k: decode_number(v) for k, v in encoded.get("metrics", {}).items()}
    return info


def encode_observation(observation: Any) -> Any:
    """Return a text observation as it travels.

    Raises:
        TypeError: The observation is of a kind that has no wire form.
    """
    if not isinstance(observation, str):
        raise TypeError(f"no wire form for observations of type {type(observation).__name__}")
    return observation


def decode_observation(encoded: Any) -> Any:
    """Return the observation that `encode_observation` was given.

    Raises:
        BadRequest: It is none.
    """
    if not isinstance(encoded, str):
        raise BadRequest(f"an observation is a string, got {type(encoded).__name__}")
    return encoded
