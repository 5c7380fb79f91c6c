"""The text of an exception, as AppWorld's engine shows it to an agent.

Only frames of the agent's own code are shown, all under the name `<python-input>`. The rules are
the engine's, flaws included: an indented line belongs to the frame above it and is dropped with
it, so an exception group, whose lines are all indented, has no text.
"""

from __future__ import annotations

import re
from textwrap import dedent
from traceback import TracebackException
from typing import Final

FAILED: Final = "Execution failed. Traceback:\n"
CELL: Final = "<python-input-{}>"
"""Name of a cell's source, with its number, which the output does not show."""

_ANY_CELL: Final = re.compile(r"<python-input-\d+>")
_FRAME: Final = re.compile(r' +File "(.*?)", line (\d+), in .+')
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
    lines = _lines_of_agent_code("".join(TracebackException.from_exception(exception).format()))
    starts = [i for i, line in enumerate(lines) if _ANY_CELL.search(line)]
    text = "\n".join(lines[starts[0] :] if starts else lines)
    text = _ANY_CELL.sub("<python-input>", text)
    for shown, replacement in _REPLACEMENTS:
        text = text.replace(shown, replacement)
    return dedent(text)


def _lines_of_agent_code(text: str) -> list[str]:
    kept, own = [], False
    for line in text.splitlines():
        if line.startswith("  "):
            frame = _FRAME.match(line)
            if frame:
                own = bool(_ANY_CELL.search(frame[1]))
            if not own:
                continue
        kept.append(line)
    return kept


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
