"""Finds JSON objects in model output: fenced, amid prose, or in JavaScript or Python notation.

No text raises, and the time is linear in its length. An object that lacks its last brace gets it;
one that lacks more is not completed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, Final

MINUS_SIGNS: Final = "\u2212\u2012\u2013\ufe63\uff0d"
"""The minus signs of typography, and the dashes that people write for them."""

_DECODER: Final = json.JSONDecoder(strict=False)
_MAX_BRACES: Final = 8
"""How many opening braces are tried."""

_OPENING_BRACE: Final = re.compile(r"\{")
_THOUGHT: Final = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
_END_OF_THOUGHT: Final = re.compile(r"</think(?:ing)?>")
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")

# Each begins with whole strings, so that nothing inside them matches the rest.
_STRING: Final = r""""(?:[^"\\]|\\.)*+"?|'(?:[^'\\]|\\.)*+'?"""
_COMMENT: Final = re.compile(
    rf"({_STRING})|//[^\n]*|\#[^\n]*|/\*(?:[^*]|\*(?!/))*+(?:\*/)?", re.DOTALL
)
# A comma before a closing bracket; a Python literal; a number such as 8/10; one such as +3; and a
# minus sign of typography.
_FIXABLE: Final = re.compile(
    rf"{_STRING}|,(?=\s*[}}\]])|\b(?:True|False|None)\b"
    rf"|(?<![\d.])[+-]?\d{{1,3}}\s{{0,2}}/\s{{0,2}}\d{{1,3}}|\+(?=\d)|[{MINUS_SIGNS}](?=\d)",
    re.DOTALL,
)
# A string that ends at the first quote before a mark that may follow a string.
_OPEN_STRING: Final = re.compile(r'"((?:[^"\\]|\\.|"(?!\s*+(?:[,:}\]]|\Z)))*+)("?)', re.DOTALL)
_INNER_QUOTE: Final = re.compile(r'\\.|"', re.DOTALL)
_LITERALS: Final = {"True": "true", "False": "false", "None": "null"}
_QUOTE: Final = re.compile(r"""\\(.)|\"""", re.DOTALL)


def strip_thoughts(text: str) -> str:
    """Return an answer without <think> blocks, also unclosed ones and those a template opened."""
    text = _THOUGHT.sub("", text)
    return _END_OF_THOUGHT.split(text)[-1].strip()


def replace_surrogates(text: str) -> str:
    """Return the text with lone surrogates replaced, so that it can be encoded."""
    return _LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)


def json_objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in a text, in order; nested objects are not yielded separately.

    If an object is not valid JSON, it is corrected and parsed once more: single quotes, trailing
    commas, comments, Python literals, and numbers such as +3 and 8/10 (as a string). If that fails,
    quotes inside strings are escaped too. A corrected object is the last one.
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
    """Return the fields inside wrappers of these names, such as a copied schema's `properties`."""
    while True:
        inner = [fields[name] for name in names if isinstance(fields.get(name), Mapping)]
        if not inner:
            return fields
        fields = inner[0]


def _decode_object(text: str) -> tuple[dict[str, Any] | None, int]:
    """Return the JSON object at the start of a text, or None, and the number of characters read."""
    with suppress(ValueError, RecursionError):
        return _DECODER.raw_decode(text)
    for corrected in (text, _OPEN_STRING.sub(_escape_inner_quotes, text)):
        plain = _COMMENT.sub(lambda match: match[1] or " ", corrected)
        with suppress(ValueError, RecursionError):
            return _decode_unclosed(_FIXABLE.sub(_fix, plain)), len(text)
    return None, 0


def _decode_unclosed(text: str) -> dict[str, Any]:
    """Return the JSON object at the start of a text, of which one closing brace may be missing."""
    try:
        value: dict[str, Any] = _DECODER.raw_decode(text)[0]
    except json.JSONDecodeError as e:
        if text[e.pos :].strip("` \t\r\n"):
            raise
        value = _DECODER.raw_decode(text[: e.pos].rstrip(" \t\r\n`") + "}")[0]
        if not value:  # a brace alone
            raise
    return value


def _escape_inner_quotes(match: re.Match[str]) -> str:
    if not match[2]:
        return match[0]
    inside = _INNER_QUOTE.sub(lambda found: found[0] if len(found[0]) > 1 else '\\"', match[1])
    return f'"{inside}"'


def _fix(match: re.Match[str]) -> str:
    piece = match[0]
    if piece[0] == "'" and piece[-1] == "'" and len(piece) > 1:
        return f'"{_QUOTE.sub(_requote, piece[1:-1])}"'
    if "/" in piece and piece[0] not in "\"'":
        return f'"{piece}"'
    if piece in MINUS_SIGNS:
        return "-"
    return piece if piece[0] in "\"'" else _LITERALS.get(piece, "")


def _requote(match: re.Match[str]) -> str:
    """Return a quote or escape of a single-quoted string, written for a double-quoted one."""
    if match[0] == '"':
        return '\\"'
    return "'" if match[1] == "'" else match[0]
