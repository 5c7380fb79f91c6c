"""Extracts the code from the text of an action, and parses it."""

from __future__ import annotations

import ast
import os
import re
import textwrap
import threading
import warnings
from typing import Final

from agentgyms.core.outcome import MAX_ACTION

_FENCED: Final = re.compile(
    r"^[ \t]*```[ \t]*(?P<language>[^\n`<>]*)(?:\n|\Z)"
    r"(?P<code>.*?)(?:^[ \t]*```[^\n]*|```[ \t]*$|\Z)",
    re.DOTALL | re.MULTILINE,
)
_TAGGED: Final = re.compile(r"<code>(?P<code>.*?)(?:</code>|\Z)", re.DOTALL | re.IGNORECASE)
_LANGUAGES: Final = ("", "py", "python", "python3")
_BROKEN_ESCAPES: Final = ("ignore", None, Warning, re.compile("<action>"), 0)
_TOO_DEEP: Final = "the code is nested too deeply"
_parsing = threading.Lock()
"""Held while code is parsed: CPython 3.11 counts the depth of all threads' trees in one place, and
raises SystemError where the collection of garbage lets another thread parse meanwhile."""


class NoCode(ValueError):
    """An action holds no code to run; the message says why."""


def extract_code(action: str) -> str:
    """Return the code of an action, stripped and dedented; raise `NoCode` if it has none.

    A fenced block (```` ```python ````, ```` ```py ```` or no name) or `<code>` tags around the
    code are removed. The first of several blocks counts, as in AppWorld's agent: the model
    wrote the others without seeing an output. A block that is not closed ends with the action.
    """
    if len(action) > MAX_ACTION:
        raise NoCode(f"the action is longer than {MAX_ACTION} characters")
    text = _dedented(action)
    code = text if is_code(text) else _first_block(text)
    if not code:
        raise NoCode("the action holds no code")
    return code


def is_code(text: str) -> bool:
    """Return whether a text parses as Python."""
    try:
        parse(text)
    except SyntaxError:
        return False
    return True


def parse(code: str) -> ast.Module:
    """Return the syntax tree of code; `SyntaxError` also if it is nested too deeply."""
    if warnings.filters[0] != _BROKEN_ESCAPES:
        # One filter for this file name alone; `catch_warnings` is not thread-safe.
        warnings.filterwarnings("ignore", module="<action>")
    try:
        with _parsing:
            return ast.parse(code, filename="<action>")
    except (RecursionError, MemoryError):
        raise SyntaxError(_TOO_DEEP) from None
    except SyntaxError:
        raise
    except ValueError as e:  # null bytes, lone surrogates
        raise SyntaxError(str(e)) from None


def _reset_after_fork() -> None:
    """Take a new lock in a forked child: the thread that held the old one may not exist there."""
    global _parsing
    _parsing = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


def canonical(code: str) -> str:
    """Return code without comments in one layout, or unchanged: `ast.unparse` refuses some code."""
    try:
        return ast.unparse(parse(code)) or code
    except Exception:
        return code


def _first_block(text: str) -> str:
    """Return the code of the first block of a text, or the text if it has no block."""
    fenced = [
        match for match in _FENCED.finditer(text) if match["language"].strip().lower() in _LANGUAGES
    ]
    found = sorted([*fenced, *_TAGGED.finditer(text)], key=lambda match: match.start())
    return _dedented(found[0]["code"]) if found else text


def _dedented(text: str) -> str:
    # `dedent` also empties blank lines, which may be in strings: it is used only if needed.
    indented = text.lstrip("\r\n")[:1] in (" ", "\t")
    return (textwrap.dedent(text) if indented else text).strip()
