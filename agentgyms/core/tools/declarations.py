"""Declarations of tools, and their calls as texts of actions."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple

from agentgyms.core.tools.arguments import (
    SURROGATE,
    Argument,
    BadCall,
    json_text,
    object_schema,
    shown,
)

_PLACE: Final = re.compile(r"\{(\w+)\}")
_OPEN: Final = re.compile(r"<\w+>")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


class ToolCall(NamedTuple):
    """A call: the tool's name, and the value of each argument."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Tool:
    """A function that stands for actions of one form.

    Args:
        name: Letters, digits and underscores, at most 64.
        description: Text for the model.
        action: Text of the action, with `{argument}` where the value of an argument stands. With ""
            it is the name and, in an object of JSON, the arguments: `find {"city": "Rome"}`.
        arguments: Each argument by its name: its description, or an `Argument`.

    Raises:
        ValueError: The name is none, or the places in `action` are not those of the arguments,
            which are all required.
    """

    name: str
    description: str
    action: str = ""
    arguments: Mapping[str, str | Argument] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"{self.name!r} is no name of a tool: expected letters, digits and _")
        places = _PLACE.findall(self.action)
        if not self.action:
            return
        if not all(one.required for one in self.parameters.values()):
            raise ValueError(f"the tool {self.name} has an optional argument: leave out its action")
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
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": {"type": "object", **object_schema(self.parameters)},
        }
        return {"type": "function", "function": function}

    def text(self, arguments: Mapping[str, Any]) -> str:
        """Return a call's action; raise `BadCall` if an argument is missing, unknown or wrong."""
        known = self.parameters
        for name in arguments:
            if name not in known:
                names = f"its arguments are {', '.join(known)}" if known else "it takes none"
                raise BadCall(f"{self.name} has no argument {shown(name)}: {names}")
        given = {name: arguments[name] for name in known if name in arguments}
        for name, one in known.items():
            if one.required and name not in given:
                raise BadCall(f"{self.name} lacks its argument {name}")
            if not one.required and given.get(name, "") is None:
                del given[name]  # some models write null for what they leave out
        if not self.action:
            return self._json_text(given)
        texts = {name: one.text(name, arguments[name]) for name, one in known.items()}
        return _PLACE.sub(lambda place: texts[place[1]], self.action)

    def find(self, action: str) -> ToolCall | None:
        """Return the call that stands for an action; None if it has another form."""
        try:
            arguments = self._arguments(action)
            exact = self.text(arguments) == action
        except BadCall:
            return None
        return ToolCall(self.name, arguments) if exact else None

    def _json_text(self, given: Mapping[str, Any]) -> str:
        for name, value in given.items():
            self.parameters[name].check(name, value)
        text = f"{self.name} {json_text(given)}" if given else self.name
        if SURROGATE.search(text):
            raise BadCall(f"the arguments of {self.name} have characters that are no text")
        return text

    def _arguments(self, action: str) -> dict[str, Any]:
        """Return the arguments in an action; `BadCall` if it has another form."""
        if self.action:
            found = self._pattern.fullmatch(action)
            if found is None:
                raise BadCall(f"the action has not the form {self.action}")
            return {name: one.value(found[name]) for name, one in self.parameters.items()}
        name, _, text = action.strip().partition(" ")
        if name != self.name:
            raise BadCall(f"the action has not the form {self.name} and an object of JSON")
        try:
            arguments = json.loads(text or "{}")
        except (ValueError, RecursionError):
            raise BadCall(f"the arguments of {name} are no JSON") from None
        if not isinstance(arguments, dict):
            raise BadCall(f"the arguments of {name} must be an object of JSON")
        return arguments

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        pieces = _PLACE.split(self.action)
        places = (
            f"(?P<{piece}>.+?)" if i % 2 else re.escape(piece) for i, piece in enumerate(pieces)
        )
        return re.compile("".join(places), re.DOTALL)


class Tools:
    """The tools of an environment, in the order in which a model reads them.

    Raises `ValueError` if there is no tool, or two have the same name.
    """

    def __init__(self, *tools: Tool) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._names = textwrap.shorten(", ".join(self._tools), 600, placeholder=" ...")
        if not tools or len(self._tools) < len(tools):
            raise ValueError("tools must be at least one, with different names")

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    @property
    def schemas(self) -> list[dict[str, Any]]:
        """The tools in the form of OpenAI's API."""
        return [tool.schema for tool in self]

    @cached_property
    def plain(self) -> list[dict[str, Any]]:
        """The tools as JSON values, for `from_plain`."""
        return [asdict(tool) for tool in self]

    @classmethod
    def from_plain(cls, value: Sequence[Mapping[str, Any]]) -> Tools:
        """Return the tools that `plain` has; names that are not known are left out.

        Raises `LookupError`, `TypeError` or `ValueError` if it has none.
        """
        found = []
        for one in value:
            name, words, action = (_text(one[key]) for key in ("name", "description", "action"))
            arguments = {
                _text(key): given if isinstance(given, str) else Argument.from_plain(given)
                for key, given in one["arguments"].items()
            }
            found.append(Tool(name, words, action, arguments))
        return cls(*found)

    def action(self, call: ToolCall) -> str:
        """Return the text of a call's action; raise `BadCall` if tool or arguments are wrong."""
        if call.name not in self._tools:
            raise self._unknown(call.name)
        return self._tools[call.name].text(call.arguments)

    def read(self, action: str) -> ToolCall:
        """Return an action's call, its JSON in any order and spacing; else raise `BadCall`."""
        name = action.strip().partition(" ")[0]
        if name not in self._tools:
            raise self._unknown(name)
        tool = self._tools[name]
        call = tool.find(tool.text(tool._arguments(action)))
        assert call is not None  # a tool finds what it wrote
        return call

    def _unknown(self, name: str) -> BadCall:
        what = f"there is no tool {shown(name)}" if name else "no tool is named"
        return BadCall(f"{what}: expected one of {self._names}")

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


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text, got {shown(value)}")
    return value


def _open_or_json(value: Any) -> str:
    if isinstance(value, str) and _OPEN.fullmatch(value):
        return "..."
    return json.dumps(value, ensure_ascii=False)
