"""Reads and renders chat templates: the program of a child process, which needs jinja2 alone.

Each request and each reply is one line with a JSON object. A request has a `template` and `cpu_s`,
the CPU time after which the kernel ends this process. One with `values` and a `date` is answered
with the `text`, one without with what the template reads. `refused` is the reason of a template
that cannot be used or raises an error, `limit` the limit that it has reached.

Templates are read as transformers reads them: the same syntax, filters, functions and sandbox.
`reply` and `failure` serve the parent too, for templates of this project.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import jinja2
import jinja2.meta
from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

_MEMORY_BYTES: Final = 512 << 20
"""Memory that a template may take, in addition to what this process has at its start."""

_TEXT_PER_REQUEST: Final = 4
_MORE_TEXT: Final = 1 << 20
"""A text has at most 4 characters for each byte of its request, and 2^20 more."""

_REASON_LENGTH: Final = 1000


class _Generation(Extension):
    """The block `{% generation %}`, which marks an assistant's text and changes nothing."""

    tags = {"generation"}  # noqa: RUF012 (jinja2's own attribute)

    def parse(self, parser: Parser) -> nodes.Node:
        """Return a call of `_text` with the block: names that it sets are unknown behind it."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_text"), [], [], body).set_lineno(line)

    def _text(self, caller: Callable[[], str]) -> str:
        return caller()


class _Dict:
    """The function `dict`, without the attributes of Python's class."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict(*args, **kwargs)

    def fromkeys(self, *args: Any) -> dict[Any, Any]:
        return dict.fromkeys(*args)


class _Namespace(Namespace):
    """The function `namespace`; its attributes lead to nothing of Python."""

    def __init__(*args: Any, **kwargs: Any) -> None:
        own, *given = args  # so that `self` may be an attribute
        attributes = dict(*given, **kwargs)
        for name in attributes:
            _check_attribute(name)
        Namespace.__init__(own, attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_attribute(name)
        super().__setitem__(name, value)


def _check_attribute(name: object) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise SecurityError(f"a namespace has no attribute {name!r}, which begins with _")


def _raise_exception(message: object) -> None:
    raise jinja2.TemplateError(str(message))


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: Any = None,
    separators: Any = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


def _environment() -> ImmutableSandboxedEnvironment:
    own = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols]
    )
    own.filters["tojson"] = _to_json
    own.globals |= {"raise_exception": _raise_exception, "dict": _Dict(), "namespace": _Namespace}
    return own


_JINJA: Final = _environment()
_INSPECTED: Final = _environment()
for _name in ("lipsum", "raise_exception"):  # so that they show among the variables
    del _INSPECTED.globals[_name]


@lru_cache(16)
def _compiled(template: str) -> jinja2.Template:
    return _JINJA.from_string(template)


def _inspect(template: str) -> dict[str, Any]:
    """Return the variables that a template reads, and whether it draws or refers to files."""
    tree = _INSPECTED.parse(template)
    variables = jinja2.meta.find_undeclared_variables(tree)
    filters = {found.name for found in tree.find_all(nodes.Filter)}
    _compiled(template)
    return {
        "variables": sorted(variables),
        "draws": "random" in filters or "lipsum" in variables,
        "refers": any(True for _ in jinja2.meta.find_referenced_templates(tree)),
    }


def _render(template: str, values: dict[str, Any], date: str, most: int) -> dict[str, Any]:
    """Return the text of a chat; `strftime_now` tells the date at midnight."""
    now = datetime.fromisoformat(date).strftime
    parts, size = [], 0
    for part in _compiled(template).generate({"strftime_now": now, **values}):
        parts.append(part)
        size += len(part)
        if size > most:
            return {"limit": "text"}
    text = "".join(parts)
    text.encode()  # an error for half a character, which no tokenizer reads
    return {"text": text}


def reply(request: Mapping[str, Any], most: int) -> dict[str, Any]:
    """Return the reply, of at most `most` characters; errors of the template pass through."""
    if "values" not in request:
        return _inspect(request["template"])
    return _render(request["template"], request["values"], request["date"], most)


def failure(e: Exception) -> dict[str, Any]:
    """Return the reply to a request at which an error was raised."""
    if isinstance(e, MemoryError):
        return {"limit": "memory"}
    if isinstance(e, RecursionError):
        return {"limit": "depth"}
    reason = str(e) if isinstance(e, jinja2.TemplateError) else f"{type(e).__name__}: {e}"
    return {"refused": reason[:_REASON_LENGTH]}


def _reply_to(line: bytes) -> str:
    try:
        request = json.loads(line)
        signal.setitimer(signal.ITIMER_PROF, request["cpu_s"])  # SIGPROF ends this process
        return json.dumps(reply(request, _TEXT_PER_REQUEST * len(line) + _MORE_TEXT))
    except Exception as e:  # a template may raise what it likes
        return json.dumps(failure(e))
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _confine() -> None:
    """Limit this process's memory, and leave it to its parent to end it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the parent goes on with them, and may render
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGPROF])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):  # if memory runs out, the kernel ends this process first
        Path("/proc/self/oom_score_adj").write_text("500")
    with suppress(OSError, ValueError):  # not everywhere is memory limited
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + _MEMORY_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def main() -> None:
    """Answer requests until there are no more."""
    _confine()
    sys.stdout.write("{}\n")
    sys.stdout.flush()
    for line in sys.stdin.buffer:
        sys.stdout.write(_reply_to(line) + "\n")
        sys.stdout.flush()
    os._exit(0)  # nothing has to be tidied


if __name__ == "__main__":
    main()
