"""Code in a model's text: in `<code>` elements or in Markdown code fences."""

from __future__ import annotations

import re
import textwrap
from typing import Final, NamedTuple

# At the beginning of a line more than a word may follow the backquotes, as in Markdown.
_OPENING: Final = re.compile(
    r"<code>"
    r"|^[ \t]*(?P<line>`{3,})[ \t]*+(?P<named>[^\s`]*+)[^`\n]*+\n"
    r"|(?<!`)(?P<inside>`{3,})(?P<word>[\w+-]*)[ \t]*\r?\n",
    re.IGNORECASE | re.MULTILINE,
)
_END_OF_ELEMENT: Final = re.compile(r"</code>", re.IGNORECASE)
_PYTHON: Final = ("", "py", "python", "python3")


class _Block(NamedTuple):
    code: str
    language: str


def first_block(text: str) -> str | None:
    """Return the code of the first block in a text; None if there is none.

    A block is a `<code>` element, in any case, or a fence that names Python or no language; a fence
    directly inside an element is removed. A fence closes with as many backquotes as it opened with,
    three or more, at the end of a line. An unclosed block does not count: the beginning of a
    program can be another program.
    """
    place = 0
    while opening := _OPENING.search(text, place):
        found = _read_block(text, opening)
        if found is None:
            return None  # the rest of the text is inside the unclosed block
        block, place = found
        if block.language.lower() in _PYTHON:
            return _without_fence(block.code)
    return None


def _read_block(text: str, opening: re.Match[str]) -> tuple[_Block, int] | None:
    """Return the block that begins with `opening` and its end; None if it is not closed."""
    marks = _marks(opening)
    closing = (_end_of_fence(marks) if marks else _END_OF_ELEMENT).search(text, opening.end())
    if closing is None:
        return None
    language = opening["named"] or opening["word"] or ""
    return _Block(text[opening.end() : closing.start()], language), closing.end()


def _marks(opening: re.Match[str]) -> str:
    return opening["line"] or opening["inside"] or ""


def _end_of_fence(marks: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!`){marks}[ \t]*(?=[\r\n]|\Z)")


def _without_fence(code: str) -> str:
    """Return the code of a block without an outer fence, common indentation and blank ends."""
    inner = code.strip()
    opening = _OPENING.match(inner)
    if opening is not None and _marks(opening):
        found = _read_block(inner, opening)
        if found is not None and found[1] == len(inner):
            code = found[0].code
    first, _, rest = code.partition("\n")
    return textwrap.dedent(rest if not first.strip() else code.lstrip(" \t")).strip("\n").rstrip()


def element(code: str) -> str:
    """Return the `<code>` element of some code."""
    return f"<code>\n{code}\n</code>"
