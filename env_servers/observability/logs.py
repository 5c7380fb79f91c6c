"""The log of this package's programs: lines for people, or JSON lines for machines.

One record is one line, whatever a client sends: line ends and other control characters are escaped.
Names of sessions are secrets, so a digest stands for each.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final, Literal, TypeVar

import click

from agentgyms.data.progress_bar import ProgressBar

Format = Literal["text", "json"]

FORMAT_VARIABLE: Final = "AGENTGYMS_LOG_FORMAT"
LEVEL_VARIABLE: Final = "AGENTGYMS_LOG_LEVEL"

_OURS: Final = ("agentgyms", "env_servers")
_LEVELS: Final = ("debug", "info", "warning", "error")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_PLAIN: Final = re.compile(r"[\w.:/<>+-]+")
_DIGEST: Final = 12

F = TypeVar("F", bound=Callable[..., Any])


def options(command: F) -> F:
    """Add the log options to a command; `set_up` reads them."""
    command = click.option(
        "--log-format",
        type=click.Choice(("text", "json")),
        default="text",
        envvar=FORMAT_VARIABLE,
        show_envvar=True,
        expose_value=False,
        callback=_keep,
        help="Lines for people, or JSON lines.",
    )(command)
    return click.option(
        "--log-level",
        type=click.Choice(_LEVELS),
        default="info",
        envvar=LEVEL_VARIABLE,
        show_envvar=True,
        expose_value=False,
        callback=_keep,
        help="debug has a line for every request and every session.",
    )(command)


def _keep(context: click.Context, option: click.Parameter, value: str) -> None:
    context.meta[f"{__name__}.{option.name}"] = value


def set_up() -> None:
    """Send the log to standard error, with the command's options, unless it is set up already."""
    meta = click.get_current_context().meta
    chosen: Format = meta.get(f"{__name__}.log_format", "text")
    level = str(meta.get(f"{__name__}.log_level", "info")).upper()
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if chosen == "json" else TextLines())
    # The level is for what is ours: others' debugging shows what they send, secrets included.
    logging.basicConfig(level=max(logging.INFO, logging.getLevelName(level)), handlers=[handler])
    for name in _OURS:
        logging.getLogger(name).setLevel(level)
    logging.getLogger("waitress").setLevel(logging.WARNING)  # else a path for each lost client
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # else a line for each model's answer
    logging.captureWarnings(capture=True)
    if chosen == "json":
        ProgressBar.say = logging.getLogger("agentgyms").info
    threading.excepthook = _log_thread


def _log_thread(ended: threading.ExceptHookArgs) -> None:
    if ended.exc_type is SystemExit or ended.exc_value is None:
        return
    name = ended.thread.name if ended.thread is not None else "a thread"
    logging.getLogger("env_servers").error("%s ended", name, exc_info=ended.exc_value)


def digest(session_id: str) -> str:
    """Return a hash of a session id for the log; the id cannot be recovered from it."""
    return sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]


def fields(**values: Any) -> dict[str, Any]:
    """Return the argument `extra` of a record with JSON-plain fields; None leaves one out."""
    return {"fields": {name: value for name, value in values.items() if value is not None}}


class JsonLines(logging.Formatter):
    """A record as one line of JSON: time, level, logger, message, its fields, and its exception."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, Any] = {
            "time": _utc(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {k: v for k, v in _fields_of(record).items() if k not in line}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class TextLines(logging.Formatter):
    """A record as a line for people; the lines of its exception are indented."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        message = _CONTROL.sub(_escape, record.getMessage())
        fields_shown = "".join(
            f" {name}={_shown(value)}" for name, value in _fields_of(record).items()
        )
        line = f"{_utc(record)} {record.levelname} {record.name} {message}{fields_shown}"
        if record.exc_info:
            trace = self.formatException(record.exc_info).split("\n")
            line += "".join(f"\n    {_CONTROL.sub(_escape, part)}" for part in trace)
        return line


def _fields_of(record: logging.LogRecord) -> dict[str, Any]:
    found: dict[str, Any] = getattr(record, "fields", {})
    return found


def _shown(value: Any) -> str:
    text = str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text)


def _escape(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1] if found[0] != "\x7f" else "\\u007f"


def _utc(record: logging.LogRecord) -> str:
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{seconds}.{int(record.created % 1 * 1000):03d}Z"
