"""The text of an exception, as AppWorld's engine shows it to an agent.

Only frames of the agent's own code are shown, all under the name `<python-input>`, and what lies
before them is dropped, as the engine does. Unlike the engine's, a text keeps every line of messages
and notes, exception groups with their members, and causes that were never raised.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from textwrap import dedent
from traceback import TracebackException
from typing import Final

FAILED: Final = "Execution failed. Traceback:\n"
CELL: Final = "<python-input-{}>"
"""Name of a cell's source, with its number, which the output does not show."""

_ANY_CELL: Final = re.compile(r"<python-input-\d+>")
_FRAME: Final = re.compile(r' +File "(.*?)", line (\d+), in .+')
_GROUP_MARGIN: Final = re.compile(r"^ +[|+] ")
_HEADER: Final = "Traceback (most recent call last):\n"
_HEADERS: Final = (_HEADER, f"Exception Group {_HEADER}")
_LINKS: Final = (
    "\nThe above exception was the direct cause of the following exception:\n\n",
    "\nDuring handling of the above exception, another exception occurred:\n\n",
)
_STATUS: Final = re.compile(r"Response status code is (\d+)")
_ONE_LINE: Final = 500


class ExecutionTimeout(Exception):  # noqa: D101 (named by the lines below)
    pass


# Code that catches it sees the same name as in the engine.
ExecutionTimeout.__name__ = ExecutionTimeout.__qualname__ = "TimeoutError"
ExecutionTimeout.__module__ = "appworld.common.utils"

_REPLACEMENTS: Final = (
    ("fastapi.exceptions.HTTPException", "Exception"),
    ("Exception: 422:", "Exception:"),
    ("appworld.common.utils.TimeoutError: Function run_cell execution", "Exception: Execution"),
)


def timeout(timeout_s: float) -> ExecutionTimeout:
    """Return the exception that ends code at its time limit."""
    return ExecutionTimeout(f"Function run_cell execution timed out after {timeout_s:g} seconds.")


def trace(exception: BaseException) -> str:
    """Return the text of an exception that the agent's code raised."""
    pieces = _pieces_of_agent_code(TracebackException.from_exception(exception).format())
    text = "".join(_from_agent_code_on(pieces)).removesuffix("\n")
    text = _ANY_CELL.sub("<python-input>", text)
    for shown, replacement in _REPLACEMENTS:
        text = text.replace(shown, replacement)
    return dedent(text)


def _pieces_of_agent_code(pieces: Iterable[str]) -> list[str]:
    """Return the pieces of a traceback, such as a frame or a message, without others' frames."""
    kept, in_frames, own = [], False, False
    for piece in pieces:
        text = _GROUP_MARGIN.sub("", piece)
        if text in _HEADERS:
            in_frames, own = True, False
        elif in_frames and text.startswith("  "):
            frame = _FRAME.match(text)
            if frame:
                own = bool(_ANY_CELL.search(frame[1]))
            if not own:
                continue
        else:
            in_frames = False
        kept.append(piece)
    return kept


def _from_agent_code_on(pieces: list[str]) -> list[str]:
    """Return the pieces from the first frame of agent's code on, with causes never raised."""
    first = next((i for i, piece in enumerate(pieces) if _ANY_CELL.search(piece)), 0)
    causes: list[str] = []
    part: list[str] = []
    for piece in pieces[:first]:
        part.append(piece)
        if piece in _LINKS:
            if _HEADER not in part:  # else it was raised, and handled, by others' code
                causes += part
            part = []
    if not causes and part == [_HEADER]:
        part = []
    return causes + part + pieces[first:]


def syntax_trace(error: SyntaxError) -> str:
    """Return the text of an error in code that cannot be parsed."""
    return f"Syntax error in line:\n{(error.text or '').rstrip()}\nMessage: {error.msg}"


def summary(exception: BaseException) -> dict[str, object]:
    """Return an exception's kind, its text in one line, and the HTTP status in it or None."""
    kind = type(exception).__name__
    if isinstance(exception, ExecutionTimeout):
        kind, text = "Exception", str(exception).removeprefix("Function run_cell e")
        text = f"E{text}"
    elif isinstance(exception, SyntaxError):
        text = exception.msg or ""
    else:
        text = _text(exception)
    if kind == "HTTPException":
        kind, text = "Exception", text.removeprefix("422: ")
    status = _STATUS.search(text)
    line = " ".join(f"{kind}: {text}".split()) if text else kind
    return {
        "error_kind": kind,
        "error": line if len(line) <= _ONE_LINE else line[: _ONE_LINE - 3] + "...",
        "status": int(status[1]) if status else None,
    }


def _text(exception: BaseException) -> str:
    try:
        return str(exception)
    except Exception:  # the agent's own __str__
        return "<exception str() failed>"
