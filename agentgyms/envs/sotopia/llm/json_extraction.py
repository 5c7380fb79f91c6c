"""Finds JSON objects in model output: fenced, amid prose, or in JavaScript or Python notation.

No text raises, and the time is linear in its length. A truncated object is not completed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, Final

_DECODER: Final = json.JSONDecoder(strict=False)
_MAX_BRACES: Final = 8
"""How many opening braces are tried."""

_OPENING_BRACE: Final = re.compile(r"\{")
_THOUGHT: Final = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
_END_OF_THOUGHT: Final = re.compile(r"</think(?:ing)?>")
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")

# A whole string, so that nothing inside it matches the rest; a comma before a closing bracket; a
# Python literal; and the plus sign of a number such as +3.
_FIXABLE: Final = re.compile(
    r""""(?:[^"\\]|\\.)*+"?|'(?:[^'\\]|\\.)*+'?|,(?=\s*[}\]])|\b(?:True|False|None)\b|\+(?=\d)""",
    re.DOTALL,
)
_LITERALS: Final = {"True": "true", "False": "false", "None": "null"}
_QUOTE: Final = re.compile(r"""\\(.)|\"""", re.DOTALL)


def strip_thoughts(text: str) -> str:
    """Return an answer without its <think> blocks.

    An unclosed block extends to the end of the text. A block without an opening tag was opened by
    the model's chat template.
    """
    text = _THOUGHT.sub("", text)
    return _END_OF_THOUGHT.split(text)[-1].strip()


def replace_surrogates(text: str) -> str:
    """Return the text with lone surrogates replaced, so that it can be encoded."""
    return _LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)


def json_objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in a text, in order; nested objects are not yielded separately.

    If an object is not valid JSON, it is parsed once more with single quotes, trailing commas,
    Python literals and numbers such as +3 corrected; it is then the last one.
    """
    passed = 0
    for brace in islice(_OPENING_BRACE.finditer(text), _MAX_BRACES):
        start = brace.start()
        if start >= passed:
            value, length = _decode_object(text[start:])
            passed = start + length
            if value is not None:
                yield value


def unwrap(fields: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """Return the mapping inside a wrapper of one of these names, or the fields themselves.

    Models that see a JSON schema tend to copy its form and answer below `properties`.
    """
    while True:
        inner = [fields[name] for name in names if isinstance(fields.get(name), Mapping)]
        if not inner:
            return fields
        fields = inner[0]


def _decode_object(text: str) -> tuple[dict[str, Any] | None, int]:
    """Return the JSON object at the start of a text, or None, and the number of characters read."""
    with suppress(ValueError, RecursionError):
        return _DECODER.raw_decode(text)
    with suppress(ValueError, RecursionError):
        return _DECODER.raw_decode(_FIXABLE.sub(_fix, text))[0], len(text)
    return None, 0


def _fix(match: re.Match[str]) -> str:
    """Return a matched piece of text as valid JSON."""
    piece = match[0]
    if piece[0] == "'" and piece[-1] == "'" and len(piece) > 1:
        return f'"{_QUOTE.sub(_requote, piece[1:-1])}"'
    return piece if piece[0] in "\"'" else _LITERALS.get(piece, "")


def _requote(match: re.Match[str]) -> str:
    """Return a quote or escape of a single-quoted string, written for a double-quoted one."""
    if match[0] == '"':
        return '\\"'
    return "'" if match[1] == "'" else match[0]
