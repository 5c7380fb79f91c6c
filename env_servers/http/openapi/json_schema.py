"""JSON schemas of messages, made from the types and the docstrings of their fields."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterable, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Final, get_args, get_origin, get_type_hints, is_typeddict

from agentgyms.core.images import MAX_PIXELS
from agentgyms.core.outcome import INFO_TYPES, Feedback, TurnInfo
from agentgyms.remote.protocol import error_codes

Schema = dict[str, Any]

_TYPES: Final = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}
_ATTRIBUTE: Final = re.compile(r"^    (\w+): (.+(?:\n        .+)*)", re.MULTILINE)


def reference(name: str) -> Schema:
    """Return a reference to a named schema of the document."""
    return {"$ref": f"#/components/schemas/{name}"}


def object_of(properties: Mapping[str, Schema], required: Iterable[str] | None = None) -> Schema:
    """Return the schema of an object with these properties alone, by default all required."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties if required is None else required),
        "additionalProperties": False,
    }


def properties_of(kind: type[Any]) -> dict[str, Schema]:
    """Return each field's schema of a dataclass or `TypedDict`, described under `Attributes:`."""
    _, _, text = (inspect.getdoc(kind) or "").partition("Attributes:\n")
    meaning = {name: " ".join(words.split()) for name, words in _ATTRIBUTE.findall(text)}
    found = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        schema = schema_of(hint)
        if name in meaning and "$ref" not in schema:
            schema["description"] = meaning[name]
        found[name] = schema
    return found


def request_of(kind: type[Any]) -> Schema:
    """Return the schema of a request: fields with a default may be missing."""
    needed = [field.name for field in dataclasses.fields(kind) if not _has_default(field)]
    return object_of(properties_of(kind), needed)


def schema_of(hint: Any) -> Schema:
    """Return the schema of the JSON values of a field's type; `TypeError` if it has none.

    `Annotated` adds keywords of JSON Schema as a dictionary, or replaces the schema by a named one:
    a class stands for its name, a string for itself.
    """
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _annotated(parts[0], parts[1:])
    if hint is Any:
        return {}
    if isinstance(hint, type) and hint in _TYPES:
        return {"type": _TYPES[hint]}
    if origin is UnionType:
        options = [schema_of(part) for part in parts]
        merged: Schema = {}
        for option in options:
            merged |= option
        return merged | {"type": [option["type"] for option in options]}
    if origin is list:
        return {"type": "array", "items": schema_of(parts[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": schema_of(parts[1]) or True}
    if is_typeddict(hint) or dataclasses.is_dataclass(hint):
        return reference(hint.__name__)
    raise TypeError(f"no JSON schema for the type {hint!r} of a field")


def _annotated(hint: Any, extras: tuple[Any, ...]) -> Schema:
    schema = schema_of(hint)
    for extra in extras:
        if isinstance(extra, dict):
            schema = schema | extra
        else:
            schema = reference(extra if isinstance(extra, str) else extra.__name__)
    return schema


def _has_default(field: dataclasses.Field[Any]) -> bool:
    missing = dataclasses.MISSING
    return field.default is not missing or field.default_factory is not missing


_TEXT: Final[Schema] = {"type": "string"}
_POSITIVE: Final[Schema] = {"type": "integer", "minimum": 1}
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


def value_schemas() -> dict[str, Schema]:
    """Return the named schemas of what messages hold: observations, infos, spaces and errors."""
    content = {"contentEncoding": "base64", "contentMediaType": "image/png"}
    fields = {
        name: schema | _INFO.get(name, {}) for name, schema in properties_of(TurnInfo).items()
    }
    shape: dict[str, Any] = {"type": "array", "items": _POSITIVE, "minItems": 3, "maxItems": 3}
    shape["description"] = "Height, width and 3 colours: red, green, blue."
    spaces = _by_name(reference("TextSpace"), reference("ImageSpace"))
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
        "TextSpace": object_of({"type": _const("UnicodeText"), "max_length": _POSITIVE}),
        "ImageSpace": object_of({"type": _const("Box"), **limits, "shape": shape}),
        "DictSpace": object_of({"type": _const("Dict"), "spaces": spaces}),
    }


def _by_name(*options: Schema) -> Schema:
    """Return the schema of an object with at least one value, each of one of the options."""
    return {"type": "object", "minProperties": 1, "additionalProperties": {"oneOf": [*options]}}


def _const(value: str | int) -> Schema:
    return {"type": "integer" if isinstance(value, int) else "string", "const": value}


def _error() -> Schema:
    return object_of(
        {
            "code": {"type": "string", "enum": sorted(error_codes.CODES)},
            "message": _TEXT,
            "retryable": {"type": "boolean", "description": "The same request may succeed later."},
            "hint": {"type": "string", "description": "What to do."},
        }
    )
