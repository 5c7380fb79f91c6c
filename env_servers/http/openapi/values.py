"""Schemas of the values in messages: observations, images, spaces, infos and errors."""

from __future__ import annotations

from typing import Any, Final

from agentgyms.core.images import MAX_PIXELS
from agentgyms.core.outcome import INFO_TYPES, Feedback, TurnInfo
from agentgyms.protocol import error_codes
from env_servers.http.openapi.json_schema import Schema, object_of, properties_of, reference

_TEXT: Final[Schema] = {"type": "string"}
_NUMBER_OR_NULL: Final[Schema] = {"type": ["number", "null"]}
_SHARE: Final[Schema] = {**_NUMBER_OR_NULL, "minimum": 0, "maximum": 1}
_INFO: Final[dict[str, Schema]] = {
    "turn": {"minimum": 0},
    "feedback": {"enum": [str(feedback) for feedback in Feedback]},
    "progress": _SHARE,
    "score": _SHARE,
    "metrics": {"additionalProperties": {"type": "number"}},
}
"""Schemas of fields of an info whose types do not say that nan travels as null."""


def schemas() -> dict[str, Schema]:
    """Return the named schemas of values."""
    content = {"contentEncoding": "base64", "contentMediaType": "image/png"}
    fields = {
        name: schema | _INFO.get(name, {}) for name, schema in properties_of(TurnInfo).items()
    }
    shape: dict[str, Any] = {"type": "array", "items": _positive(), "minItems": 3, "maxItems": 3}
    shape["description"] = "Height, width and 3 colours: red, green, blue."
    limits = {"dtype": _const("uint8"), "low": _const(0), "high": _const(255)}
    return {
        "Error": object_of({"error": _error()}),
        "TurnInfo": object_of(fields, INFO_TYPES),
        "Observation": {
            "description": "What the agent sees: a text, or texts and images by name.",
            "oneOf": [_TEXT, _by_name(_TEXT, reference("Image"))],
        },
        "Image": object_of(
            {"png": {**_TEXT, **content, "description": f"8-bit RGB, at most {MAX_PIXELS} pixels."}}
        ),
        "Render": {"anyOf": [{"type": ["string", "null"]}, reference("Image")]},
        "Space": {"oneOf": [reference(f"{kind}Space") for kind in ("Text", "Image", "Dict")]},
        "TextSpace": object_of({"type": _const("UnicodeText"), "max_length": _positive()}),
        "ImageSpace": object_of({"type": _const("Box"), **limits, "shape": shape}),
        "DictSpace": object_of({"type": _const("Dict"), "spaces": _parts()}),
    }


def _parts() -> Schema:
    return _by_name(reference("TextSpace"), reference("ImageSpace"))


def _by_name(*options: Schema) -> Schema:
    """Return the schema of an object with at least one value, each of one of the options."""
    return {"type": "object", "minProperties": 1, "additionalProperties": {"oneOf": [*options]}}


def _const(value: str | int) -> Schema:
    return {"type": "integer" if isinstance(value, int) else "string", "const": value}


def _positive() -> Schema:
    return {"type": "integer", "minimum": 1}


def _error() -> Schema:
    return object_of(
        {
            "code": {"type": "string", "enum": sorted(error_codes.CODES)},
            "message": _TEXT,
            "retryable": {"type": "boolean", "description": "The same request may succeed later."},
            "hint": {"type": "string", "description": "What to do."},
        }
    )
