"""JSON objects in what models say: fenced, amid prose, or written as JavaScript and Python have it.

No text raises, and the time is linear in its length. What is cut off is not completed: half an
utterance is none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, Final

_DECODER: Final = json.JSONDecoder(strict=False)
_TRIES: Final = 8
"""How many opening braces are looked at."""

_OPENING: Final = re.compile(r"\{")
_THOUGHT: Final = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
_END_OF_THOUGHT: Final = re.compile(r"</think(?:ing)?>")
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")

# A whole string, so that nothing in it is taken for what follows here; a comma before a closing
# bracket; a literal of Python's; and the sign of a number as in +3.
_PIECE: Final = re.compile(
    r""""(?:[^"\\]|\\.)*+"?|'(?:[^'\\]|\\.)*+'?|,(?=\s*[}\]])|\b(?:True|False|None)\b|\+(?=\d)""",
    re.DOTALL,
)
_LITERALS: Final = {"True": "true", "False": "false", "None": "null"}
_QUOTE: Final = re.compile(r"""\\(.)|\"""", re.DOTALL)


def spoken(text: str) -> str:
    """Return an answer without the thoughts before it.

    A thought that nothing ends is one to the end of the text. One that nothing begins was begun by
    the model's chat template.
    """
    text = _THOUGHT.sub("", text)
    return _END_OF_THOUGHT.split(text)[-1].strip()


def sound(text: str) -> str:
    """Return a text that every encoding can carry: lone surrogates are replaced."""
    return _LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)


def objects(text: str) -> Iterator[dict[str, Any]]:
    """Return the JSON objects in a text, in order; objects within others are not told alone.

    Where one is no JSON, it is read once more with single quotes, trailing commas, literals of
    Python's and numbers such as +3 put right; it is then the last one.
    """
    passed = 0
    for brace in islice(_OPENING.finditer(text), _TRIES):
        start = brace.start()
        if start >= passed:
            value, length = _first(text[start:])
            passed = start + length
            if value is not None:
                yield value


def unwrapped(fields: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """Return what is within a wrapper of one of these names, or the fields themselves.

    Models that are shown a JSON schema tend to answer in its form, below `properties`.
    """
    while True:
        inner = [fields[name] for name in names if isinstance(fields.get(name), Mapping)]
        if not inner:
            return fields
        fields = inner[0]


def _first(text: str) -> tuple[dict[str, Any] | None, int]:
    """Return the object with which a text begins, if any, and how much of the text is done."""
    with suppress(ValueError, RecursionError):
        return _DECODER.raw_decode(text)
    with suppress(ValueError, RecursionError):
        return _DECODER.raw_decode(_PIECE.sub(_mended, text))[0], len(text)
    return None, 0


def _mended(match: re.Match[str]) -> str:
    """Return a piece of a text as JSON has it."""
    piece = match[0]
    if piece[0] == "'" and piece[-1] == "'" and len(piece) > 1:
        return f'"{_QUOTE.sub(_requoted, piece[1:-1])}"'
    return piece if piece[0] in "\"'" else _LITERALS.get(piece, "")


def _requoted(match: re.Match[str]) -> str:
    """Return a quote or an escape of a single-quoted string as a double-quoted one has it."""
    if match[0] == '"':
        return '\\"'
    return "'" if match[1] == "'" else match[0]
