"""Encodes observations and infos as strict JSON, for messages, recordings and snapshots.

JSON has no nan, so nan becomes null in the numeric fields, which are known by name. A text is a
string, an image an object with one key, `{"png": "<base64>"}`.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from typing import Any

from agentgyms.core import images
from agentgyms.core.errors import BadRequest
from agentgyms.core.outcome import INFO_TYPES, known

_FLOAT_FIELDS = ("progress", "score")


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


# Created once: `json.dumps` and `json.loads` would create them for each message.
_decode = json.JSONDecoder(parse_constant=_refuse_constant).decode
dumps = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
"""Returns a value as one line of strict, ASCII-only JSON.

Raises `ValueError` for nan and the infinities; `encode_info` replaces them in its fields.
"""


def loads(text: str | bytes, what: str = "message") -> Any:
    """Return the value of a JSON text; raise `BadRequest`, about `what`, if it is not strict."""
    try:
        if isinstance(text, bytes):
            text = text.decode(json.detect_encoding(text), "surrogatepass")
        return _decode(text)
    except (ValueError, RecursionError) as e:
        raise BadRequest(f"the {what} is not valid JSON: {e}") from None


def encode_number(value: float) -> float | None:
    """Return the number, or None if it is nan or infinite."""
    return value if math.isfinite(value) else None


def decode_number(value: Any) -> float:
    """Return the number that `encode_number` encoded, None as nan; else raise `BadRequest`."""
    if value is None:
        return math.nan
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise BadRequest(f"a number or null was expected, got {value!r:.80}")
    try:
        return float(value)
    except OverflowError:
        raise BadRequest(f"the number {value!r:.20}... is too large") from None


def encode_info(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return `info` with nan as None, and without the figures of `metrics` that are unknown."""
    encoded = dict(info)
    for name in _FLOAT_FIELDS:
        if name in encoded:
            encoded[name] = encode_number(encoded[name])
    encoded["metrics"] = known(info.get("metrics", {}))
    return encoded


def decode_info(encoded: Any) -> dict[str, Any]:
    """Return the `info` that `encode_info` encoded; raise `BadRequest` for a wrong key or type."""
    if not isinstance(encoded, Mapping):
        raise BadRequest(f"an info is an object, got {type(encoded).__name__}")
    info = dict(encoded)
    info.setdefault("atoms", {})
    for name in _FLOAT_FIELDS:
        if name in info:
            info[name] = decode_number(info[name])
    if isinstance(info.get("metrics"), Mapping):
        metrics = {k: decode_number(v) for k, v in info["metrics"].items()}
        info["metrics"] = known(metrics)  # null stands for what is unknown
    _check_info(info)
    info["atoms"] = decode_atoms(info["atoms"], "info['atoms']")
    return info


def _check_info(info: Mapping[str, Any]) -> None:
    for key, expected in INFO_TYPES.items():
        if key not in info:
            raise BadRequest(f"the info has no {key!r}")
        if type(info[key]) is not expected:
            given = type(info[key]).__name__
            raise BadRequest(f"info[{key!r}] must be {expected.__name__}, got {given}")
    if not {*map(type, info["admissible_actions"])} <= {str}:
        raise BadRequest("info['admissible_actions'] must hold strings alone")
    if type(info.get("oracle", "")) is not str:
        raise BadRequest("info['oracle'] must be a string")


def decode_atoms(encoded: Mapping[Any, Any], what: str) -> dict[str, bool | float]:
    """Return the atoms of a turn; `what` names them in a `BadRequest` for a wrong one."""
    for name, value in encoded.items():
        whole = isinstance(value, bool | int | float) and type(name) is str
        if not whole or not 0 <= value <= 1:
            raise BadRequest(
                f"{name!r:.40} in {what} must be true, false or a share in [0, 1], "
                f"got {value!r:.40}"
            )
    return {name: v if isinstance(v, bool) else float(v) for name, v in encoded.items()}


def encode_observation(observation: Any) -> Any:
    """Return an observation (a text, or texts and images) as JSON; raise `TypeError` for others."""
    if isinstance(observation, str):
        return observation
    if not isinstance(observation, Mapping) or not observation:
        raise TypeError(f"no wire form for observations of type {type(observation).__name__}")
    for name in observation:
        if not isinstance(name, str):
            raise TypeError(f"the parts of an observation have strings as names, got {name!r:.80}")
    return {name: encode_part(part) for name, part in observation.items()}


def decode_observation(encoded: Any) -> Any:
    """Return the observation that `encode_observation` encoded; `BadRequest` if it is invalid."""
    if isinstance(encoded, str):
        return encoded
    if not isinstance(encoded, Mapping) or not encoded:
        raise BadRequest(
            "an observation is a string, or an object of strings and images, got "
            f"{type(encoded).__name__}{' without parts' if encoded == {} else ''}"
        )
    parts: dict[str, Any] = {}
    for name, part in encoded.items():
        parts[name] = decode_part(part, name)
        if sum(getattr(seen, "size", 0) for seen in parts.values()) > 3 * images.MAX_PIXELS:
            raise BadRequest(
                f"the observation's images have more than {images.MAX_PIXELS} pixels together"
            )
    return parts


def encode_part(part: Any) -> Any:
    """Return a text or an image (uint8 [H, W, 3]) as JSON; raise `TypeError` for anything else."""
    if isinstance(part, str):
        return part
    return {"png": base64.b64encode(images.encode_png(part)).decode("ascii")}


def decode_part(encoded: Any, name: str) -> str | images.Image:
    """Return the text or image that `encode_part` encoded; `name` names it in a `BadRequest`."""
    if isinstance(encoded, str):
        return encoded
    if not isinstance(encoded, Mapping) or set(encoded) != {"png"}:
        given = type(encoded).__name__
        if isinstance(encoded, Mapping):
            given = f"an object with the keys {', '.join(map(repr, encoded)) or 'none'}"[:120]
        raise BadRequest(
            f'{name!r:.80} must be a string or an image {{"png": "<base64>"}}, got {given}'
        )
    try:
        png = base64.b64decode(encoded["png"], validate=True)
    except (ValueError, TypeError) as e:
        raise BadRequest(f"{name!r:.80} is no image, its PNG is not base64: {e}") from None
    try:
        return images.decode_png(png)
    except BadRequest as e:
        raise BadRequest(f"{name!r:.80} is no image: {e}") from None
