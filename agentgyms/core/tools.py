"""Tools: an environment's actions as functions that a model calls.

Each tool has the text of an action with places for its arguments. So a call becomes the text that
`act` takes, and an action the call that an expert would make.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple

_PLACE: Final = re.compile(r"\{(\w+)\}")
_OPEN: Final = re.compile(r"<\w+>")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_INTEGER: Final = re.compile(r"-?[0-9]{1,18}")
_TOO_LARGE: Final = 10**18
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class BadCall(ValueError):
    """A call cannot be made; the message tells the model why, without a full stop."""


class ToolCall(NamedTuple):
    """A call: the tool's name, and the value of each argument."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a tool.

    Attributes:
        description: Text for the model.
        type: `"string"` or `"integer"`.
        choices: The only values that a string may have; () allows all that are not blank.
    """

    description: str
    type: Literal["string", "integer"] = "string"
    choices: tuple[str, ...] = ()

    @property
    def schema(self) -> dict[str, Any]:
        """The argument's JSON schema."""
        choices = {"enum": list(self.choices)} if self.choices else {}
        return {"type": self.type, "description": self.description, **choices}

    def text(self, name: str, value: Any) -> str:
        """Return a value as it stands in the action.

        Raises:
            BadCall: It has another type, is blank, or is none of the choices.
        """
        if self.type == "integer":
            if type(value) is not int or abs(value) >= _TOO_LARGE:
                raise BadCall(f"the argument {name} must be an integer, got {_shown(value)}")
            return str(value)
        if not isinstance(value, str):
            raise BadCall(f"the argument {name} must be a string, got {_shown(value)}")
        if self.choices and value not in self.choices:
            known = ", ".join(self.choices)
            raise BadCall(f"the argument {name} must be one of {known:.100}, got {_shown(value)}")
        if not value.strip():
            raise BadCall(f"the argument {name} is blank")
        if _SURROGATE.search(value):
            raise BadCall(f"the argument {name} has characters that are no text")
        return value

    def value(self, text: str) -> Any:
        """Return the value that a text stands for; a text that stands for none is returned."""
        if self.type == "integer" and _INTEGER.fullmatch(text):
            return int(text)
        return text


@dataclass(frozen=True)
class Tool:
    """A function that stands for actions of one form.

    Args:
        name: Letters, digits and underscores, at most 64.
        description: Text for the model.
        action: Text of the action, with `{argument}` where the value of an argument stands.
        arguments: Each argument by its name: its description, or an `Argument`. All are required.

    Raises:
        ValueError: The name is none, or the places in `action` are not those of the arguments.
    """

    name: str
    description: str
    action: str
    arguments: Mapping[str, str | Argument] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the declaration."""
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"{self.name!r} is no name of a tool: expected letters, digits and _")
        places = _PLACE.findall(self.action)
        if sorted(places) != sorted(self.arguments):
            raise ValueError(
                f"the action {self.action!r} of the tool {self.name} has places for "
                f"{places or 'nothing'}, and its arguments are {list(self.arguments) or 'none'}"
            )

    @cached_property
    def parameters(self) -> Mapping[str, Argument]:
        """The arguments by name."""
        return {
            name: Argument(given) if isinstance(given, str) else given
            for name, given in self.arguments.items()
        }

    @property
    def schema(self) -> dict[str, Any]:
        """The tool in the form of OpenAI's API."""
        parameters = {
            "type": "object",
            "properties": {name: one.schema for name, one in self.parameters.items()},
            "required": list(self.parameters),
        }
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": parameters,
        }
        return {"type": "function", "function": function}

    def text(self, arguments: Mapping[str, Any]) -> str:
        """Return the text of the action that a call stands for.

        Raises:
            BadCall: An argument is missing, unknown or has a wrong value.
        """
        known = self.parameters
        for name in arguments:
            if name not in known:
                names = f"its arguments are {', '.join(known)}" if known else "it takes none"
                raise BadCall(f"{self.name} has no argument {_shown(name)}: {names}")
        for name in known:
            if name not in arguments:
                raise BadCall(f"{self.name} lacks its argument {name}")
        texts = {name: one.text(name, arguments[name]) for name, one in known.items()}
        return _PLACE.sub(lambda place: texts[place[1]], self.action)

    def find(self, action: str) -> ToolCall | None:
        """Return the call that stands for an action; None if it has another form."""
        found = self._pattern.fullmatch(action)
        if found is None:
            return None
        arguments = {name: one.value(found[name]) for name, one in self.parameters.items()}
        try:
            exact = self.text(arguments) == action
        except BadCall:
            return None
        return ToolCall(self.name, arguments) if exact else None

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        pieces = _PLACE.split(self.action)
        places = (
            f"(?P<{piece}>.+?)" if i % 2 else re.escape(piece) for i, piece in enumerate(pieces)
        )
        return re.compile("".join(places), re.DOTALL)


class Tools:
    """The tools of an environment, in the order in which a model reads them.

    Args:
        *tools: At least one, with different names.

    Raises:
        ValueError: There is none, or two have one name.
    """

    def __init__(self, *tools: Tool) -> None:
        """Keep the tools."""
        self._tools = {tool.name: tool for tool in tools}
        if not tools or len(self._tools) < len(tools):
            raise ValueError("tools must be at least one, with different names")

    def __iter__(self) -> Iterator[Tool]:
        """Yield the tools."""
        return iter(self._tools.values())

    @property
    def schemas(self) -> list[dict[str, Any]]:
        """The tools in the form of OpenAI's API."""
        return [tool.schema for tool in self]

    def action(self, call: ToolCall) -> str:
        """Return the text of the action that a call stands for.

        Raises:
            BadCall: There is no such tool, or an argument is missing, unknown or wrong.
        """
        if call.name not in self._tools:
            names = ", ".join(self._tools)
            raise BadCall(f"there is no tool {_shown(call.name)}: expected one of {names:.180}")
        return self._tools[call.name].text(call.arguments)

    def call(self, action: str) -> ToolCall | None:
        """Return the call that stands for an action; None if no tool has its form."""
        return next((call for tool in self if (call := tool.find(action))), None)

    def typed(self, call: ToolCall) -> ToolCall:
        """Return a call whose values are all texts with the values that these stand for."""
        known = self._tools[call.name].parameters if call.name in self._tools else {}
        values = {
            name: known[name].value(value) if name in known else value
            for name, value in call.arguments.items()
        }
        return ToolCall(call.name, values)

    def shown(self, action: str) -> str:
        """Return an action as a call, such as `take(object="mug 1")`; else as it is.

        An argument that an admissible action leaves open, such as `<query>`, is shown as `...`.
        """
        call = self.call(action)
        if call is None:
            return action
        values = (f"{name}={_open_or_json(value)}" for name, value in call.arguments.items())
        return f"{call.name}({', '.join(values)})"


ANY_ACTION: Final = Tools(
    Tool("act", "Take an action.", "{action}", {"action": "The action in words."})
)
"""The tools of an environment that declares none: one, which takes the text of any action."""


def _open_or_json(value: Any) -> str:
    if isinstance(value, str) and _OPEN.fullmatch(value):
        return "..."
    return json.dumps(value, ensure_ascii=False)


def _shown(value: Any) -> str:
    """Return the beginning of a value, for messages."""
    text = repr(value) if isinstance(value, str | int | float | None) else type(value).__name__
    return text if len(text) <= 40 else f"{text[:40]}..."
