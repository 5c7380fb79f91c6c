"""Formats in which models write calls of tools, and how to tell a model's from its chat template.

| format | models | a call |
|---|---|---|
| `hermes` | Qwen2.5, Qwen3, Hermes | `<tool_call>{"name": ..., "arguments": {...}}</tool_call>` |
| `qwen3_coder` | Qwen3-Coder, Qwen3.5, Nemotron 3 | `<tool_call><function=...><parameter=...>` |
| `llama3` | Llama 3.1 and later | `{"name": ..., "parameters": {...}}` and nothing else |
| `glm` | GLM-4.5 and later | `<tool_call>name<arg_key>...</arg_key><arg_value>...` |

A plug-in adds one with `FORMATS.add`, or is named `module:attribute`; see `harness.types.plugins`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from agentgyms.core.tools import BadCall, ToolCall
from harness.types.errors import ConfigError
from harness.types.hyperparameters import Registry

_OPENING: Final = "<tool_call>"
_CLOSING: Final = "</tool_call>"
_PYTHON_TAG: Final = "<|python_tag|>"
_BLANKS: Final = re.compile(r"\s*")
_FUNCTION: Final = re.compile(r"\s*<function=([^<>\n]*)>\s*")
_PARAMETER: Final = re.compile(r"<parameter=([^<>\n]*)>\n?")
_GLM_NAME: Final = re.compile(r"\s*([^\s<>]*)\s*")
TAGS: Final = frozenset({_OPENING, _CLOSING, "<arg_key>", "</arg_key>", "<arg_value>"}) | {
    *("</arg_value>", "</function>", "</parameter>"),
}
"""Tags of calls in the formats here."""

_GLM_ARGUMENT: Final = re.compile(r"<arg_key>([^<>]*)</arg_key>\s*<arg_value>")


@dataclass(frozen=True, slots=True)
class ToolFormat:
    """A format of tool calls: its parser, its writer, and the signs of it in a chat template."""

    # Returns the calls in an answer without its thoughts, in order; raises `BadCall`, also if it is
    # cut off.
    parse: Callable[[str], list[ToolCall]]
    write: Callable[[ToolCall], str]
    signs: tuple[str, ...] = ()  # texts that are in the chat templates of its models, all of them
    untyped: bool = False  # values are written as texts, whatever their type


def read_json(text: str, start: int = 0) -> tuple[Any, int]:
    """Return the JSON value at a place of a text, and its end; raise `BadCall` if it is none."""
    try:
        return _DECODER.raw_decode(text, start)
    except BadCall:
        raise
    except json.JSONDecodeError as e:
        raise BadCall(f"the call is no JSON: {e.msg:.80} at character {e.pos - start}") from None
    except (ValueError, RecursionError):  # a number of thousands of digits, or lists in lists
        raise BadCall("the call is no JSON that can be read") from None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise BadCall("the call has a name twice")
    return found


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_distinct)


def _json_call(value: Any, *names: str) -> ToolCall:
    """Return the call of an object with a `name` and with arguments under one of `names`."""
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        raise BadCall('the call must be an object with a "name"')
    arguments = next((value[name] for name in names if name in value), None)
    if not isinstance(arguments, dict):
        raise BadCall(f'the call must have an object "{names[0]}"')
    return ToolCall(value["name"], arguments)


def _in_elements(
    read: Callable[[str, int], tuple[ToolCall, int]],
) -> Callable[[str], list[ToolCall]]:
    """Return the parser of calls in `<tool_call>` elements, each read by a function."""

    def parse(text: str) -> list[ToolCall]:
        calls, place = [], 0
        while (opening := text.find(_OPENING, place)) >= 0:
            call, end = read(text, opening + len(_OPENING))
            end = _after_blanks(text, end)
            if not text.startswith(_CLOSING, end):
                raise BadCall(f"the call must end with {_CLOSING}")
            calls.append(call)
            place = end + len(_CLOSING)
        return calls

    return parse


def _after_blanks(text: str, place: int) -> int:
    found = _BLANKS.match(text, place)
    return found.end() if found else place


def _read_hermes(text: str, place: int) -> tuple[ToolCall, int]:
    value, end = read_json(text, _after_blanks(text, place))
    return _json_call(value, "arguments"), end


def _read_qwen3_coder(text: str, place: int) -> tuple[ToolCall, int]:
    opening = _FUNCTION.match(text, place)
    if opening is None:
        raise BadCall("the call must begin with <function=name>")
    arguments: dict[str, Any] = {}
    place = opening.end()
    while parameter := _PARAMETER.match(text, place):
        end = text.find("</parameter>", parameter.end())
        if end < 0:
            raise BadCall("a parameter must end with </parameter>")
        _add(arguments, parameter[1], text[parameter.end() : end].removesuffix("\n"))
        place = _after_blanks(text, end + len("</parameter>"))
    if not text.startswith("</function>", place):
        raise BadCall("the call must end with </function>")
    return ToolCall(opening[1], arguments), place + len("</function>")


def _read_glm(text: str, place: int) -> tuple[ToolCall, int]:
    opening = _GLM_NAME.match(text, place)
    assert opening is not None  # it matches an empty text, too
    arguments: dict[str, Any] = {}
    place = opening.end()
    while argument := _GLM_ARGUMENT.match(text, place):
        end = text.find("</arg_value>", argument.end())
        if end < 0:
            raise BadCall("an argument must end with </arg_value>")
        _add(arguments, argument[1].strip(), text[argument.end() : end])
        place = _after_blanks(text, end + len("</arg_value>"))
    return ToolCall(opening[1], arguments), place


def _add(arguments: dict[str, Any], name: str, value: str) -> None:
    if name in arguments:
        raise BadCall(f"the argument {name[:40]!r} is given twice")
    arguments[name] = value


def _parse_llama3(text: str) -> list[ToolCall]:
    """Return the calls of an answer that is nothing but calls, with `;` between them."""
    text = text.strip().removeprefix(_PYTHON_TAG).strip()
    if not text.startswith("{"):
        return []
    calls, place = [], 0
    while True:
        value, end = read_json(text, place)
        calls.append(_json_call(value, "parameters", "arguments"))
        end = _after_blanks(text, end)
        if end == len(text):
            return calls
        if text[end] != ";":
            raise BadCall("there is text after the call")
        place = _after_blanks(text, end + 1)


def _json_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _value_text(value: Any) -> str:
    return value if isinstance(value, str) else _json_text(value)


def _write_hermes(call: ToolCall) -> str:
    fields = _json_text({"name": call.name, "arguments": dict(call.arguments)})
    return f"{_OPENING}\n{fields}\n{_CLOSING}"


def _write_qwen3_coder(call: ToolCall) -> str:
    parameters = "".join(
        f"<parameter={name}>\n{_value_text(value)}\n</parameter>\n"
        for name, value in call.arguments.items()
    )
    return f"{_OPENING}\n<function={call.name}>\n{parameters}</function>\n{_CLOSING}"


def _write_llama3(call: ToolCall) -> str:
    return _json_text({"name": call.name, "parameters": dict(call.arguments)})


def _write_glm(call: ToolCall) -> str:
    arguments = "".join(
        f"<arg_key>{name}</arg_key>\n<arg_value>{_value_text(value)}</arg_value>\n"
        for name, value in call.arguments.items()
    )
    return f"{_OPENING}{call.name}\n{arguments}{_CLOSING}"


HERMES: Final = ToolFormat(_in_elements(_read_hermes), _write_hermes, (_OPENING,))


_ENTRIES: Final[Mapping[str, ToolFormat]] = {
    "qwen3_coder": ToolFormat(
        _in_elements(_read_qwen3_coder), _write_qwen3_coder, ("<function=",), untyped=True
    ),
    "glm": ToolFormat(_in_elements(_read_glm), _write_glm, ("<arg_key>",), untyped=True),
    "llama3": ToolFormat(_parse_llama3, _write_llama3, ('"parameters": dictionary',)),
    "hermes": HERMES,
}

FORMATS: Final = Registry(
    "tool format",
    entries=_ENTRIES,
    make_entry=lambda _, found: found if isinstance(found, ToolFormat) else None,
)
"""All formats; a template has the first one with all its signs in the template."""


def template_format(template: str) -> str | None:
    """Return the name of the format that a chat template asks for; None if it is none of these."""
    for name, one in FORMATS.entries().items():
        if one.signs and all(sign in template for sign in one.signs):
            return name
    return None


def choose(wanted: str, found: str | None) -> str:
    """Return a model's format, for `"auto"` the one `found`; `ConfigError` if that is None."""
    if wanted != "auto":
        return wanted
    if found is None:
        raise ConfigError(
            "the model's chat template asks for calls of tools in no known format: set "
            f"agent.tool_format to one of {', '.join(FORMATS.names())}, or use another agent.style"
        )
    return found
