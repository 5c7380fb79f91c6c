"""Runs a program to its end: any error is one line, and what nobody expected is kept in a file."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import platformdirs

from agentgyms.cli import streams
from agentgyms.cli.printing import echo
from agentgyms.core.errors import path_end, plain
from agentgyms.core.imports import __version__

UNEXPECTED: Final = 1
"""Exit status after an error that nobody expected, as after Python's traceback."""

_MOST_TEXT: Final = 150
_KEPT: Final = 20
"""Logs in a folder; older ones are removed."""


def run(program: str, command: Callable[[], None]) -> None:
    """Call a program's command and end the process with its status.

    An error that it does not handle is one line, with the path of a log that has the traceback. A
    standard output that was not written as a whole is an error after all else is done.
    """
    with streams.guarded() as found:
        status: int | str | None = 0
        try:
            command()
        except SystemExit as e:
            status = e.code
        except Exception as e:
            echo(f"error: {_sentence(program, e)}", err=True)
            status = UNEXPECTED
        if isinstance(status, str):
            echo(status, err=True)
            status = 1
        if found.error is not None:
            if found.error.errno != errno.EPIPE:  # a reader that has read enough, such as `head`
                reason = found.error.strerror or found.error
                echo(f"error: the standard output cannot be written: {reason}", err=True)
            status = status or 1
    sys.exit(status)


def _sentence(program: str, error: Exception) -> str:
    """Return an unexpected error in one line, and keep its traceback."""
    name = type(error).__name__
    said = plain(_text(error), _MOST_TEXT)
    what = f"{name}: {said}" if said else name
    text = "".join(traceback.format_exception(error))
    log = _keep(program, f"{program} {__version__}, Python {sys.version}\n\n{text}")
    if log is None:
        echo(text, err=True)
        return what
    return f"{what} (unexpected; the traceback is in {path_end(log, 100)})"


def _text(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return f"{error.message}: {_text(error.exceptions[0])}"
    try:
        return str(error)
    except Exception:  # an error of a plug-in
        return ""


def _keep(program: str, text: str) -> Path | None:
    """Write a log and return its path; None if no folder takes it."""
    for folder in _folders():
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            path = folder / f"{program}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"
            with path.open("x", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
            for old in sorted(folder.glob(f"{program}-*.log"))[:-_KEPT]:
                old.unlink(missing_ok=True)
            return path
    return None


def _folders() -> Iterator[Path]:
    """Yield the folders for logs; the first that can be written takes one."""
    with suppress(OSError, RuntimeError):  # a user without a home
        yield platformdirs.user_log_path("agentgyms")
    yield Path(tempfile.gettempdir()) / f"agentgyms-logs-{os.getuid()}"
