"""Arguments of tools: their JSON schemas, and the checks of their values."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

SURROGATE: Final = re.compile("[\ud800-\udfff]")
"""Characters that are no text."""

_INTEGER: Final = re.compile(r"-?[0-9]{1,18}")
_TOO_LARGE: Final = 10**18


class BadCall(ValueError):
    """A call cannot be made; the message tells the model why, without a full stop."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a tool, with its JSON type and a description for the model.

    Attributes:
        choices: The only values that a string may have; () allows all.
        items: The items of an array; None allows all.
        properties: The values of an object that are known by name; it may have others.
    """

    description: str
    type: Literal["string", "integer", "number", "boolean", "array", "object"] = "string"
    choices: tuple[str, ...] = ()
    required: bool = True
    items: Argument | None = None
    properties: Mapping[str, Argument] = field(default_factory=dict, hash=False)

    @property
    def schema(self) -> dict[str, Any]:
        """The argument's JSON schema."""
        more: dict[str, Any] = {"enum": list(self.choices)} if self.choices else {}
        if self.items:
            more["items"] = self.items.schema
        if self.properties:
            more |= object_schema(self.properties)
        return {"type": self.type, "description": self.description, **more}

    @classmethod
    def from_plain(cls, value: Mapping[str, Any]) -> Argument:
        """Return the argument in a JSON value, whose unknown names are left out.

        Raises `LookupError`, `TypeError` or `ValueError` if it has none.
        """
        kind, items = value.get("type", "string"), value.get("items")
        choices, properties = value.get("choices", ()), value.get("properties", {})
        texts = [value["description"], *choices, *properties]
        if kind not in _TYPES or not all(isinstance(one, str) for one in texts):
            raise ValueError(f"no argument of a tool: {shown(kind)}")
        return cls(
            value["description"],
            kind,
            tuple(choices),
            bool(value.get("required", True)),
            items and cls.from_plain(items),
            {name: cls.from_plain(one) for name, one in properties.items()},
        )

    def check(self, name: str, value: Any) -> None:
        """Raise `BadCall` if a value has another type or is none of the choices."""
        right, words = _TYPES[self.type]
        if not right(value):
            raise BadCall(f"the argument {name} must be {words}, got {shown(value)}")
        if self.choices and value not in self.choices:
            known = ", ".join(self.choices)
            raise BadCall(f"the argument {name} must be one of {known:.100}, got {shown(value)}")
        for i, item in enumerate(value if self.items else ()):
            self.items.check(f"{name}[{i}]", item)  # type: ignore[union-attr]  # asked above
        for part, one in self.properties.items():
            if part in value:
                one.check(f"{name}.{part}", value[part])
            elif one.required:
                raise BadCall(f"the argument {name} lacks {part}")

    def text(self, name: str, value: Any) -> str:
        """Return a value as it stands in an action; raise `BadCall` if it is blank or wrong."""
        self.check(name, value)
        if not isinstance(value, str):
            return json_text(value)
        if not value.strip():
            raise BadCall(f"the argument {name} is blank")
        if SURROGATE.search(value):
            raise BadCall(f"the argument {name} has characters that are no text")
        return value

    def value(self, text: str) -> Any:
        """Return the value that a text stands for; a text that stands for none is returned."""
        if self.type == "string" or (self.type == "integer" and not _INTEGER.fullmatch(text)):
            return text
        try:
            return int(text) if self.type == "integer" else json.loads(text)
        except (ValueError, RecursionError):
            return text


def object_schema(properties: Mapping[str, Argument]) -> dict[str, Any]:
    """Return the names in the JSON schema of an object."""
    return {
        "properties": {name: one.schema for name, one in properties.items()},
        "required": [name for name, one in properties.items() if one.required],
    }


def json_text(value: Any) -> str:
    """Return a value as JSON; `BadCall` if it is none."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise BadCall("an argument is no JSON value") from None


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < _TOO_LARGE


_TYPES: Final[Mapping[str, tuple[Callable[[Any], bool], str]]] = {
    "string": (lambda value: isinstance(value, str), "a string"),
    "integer": (lambda value: type(value) is int and abs(value) < _TOO_LARGE, "an integer"),
    "number": (_is_number, "a number"),
    "boolean": (lambda value: isinstance(value, bool), "a boolean"),
    "array": (lambda value: isinstance(value, list), "a list"),
    "object": (lambda value: isinstance(value, dict), "an object"),
}
"""For each type of JSON whether a value has it, and its name in messages."""


def shown(value: Any) -> str:
    """Return the beginning of a value, for messages."""
    text = repr(value) if isinstance(value, str | int | float | None) else type(value).__name__
    return text if len(text) <= 40 else f"{text[:40]}..."
