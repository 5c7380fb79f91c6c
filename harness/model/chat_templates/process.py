"""The child process that reads and renders chat templates: one for this process, which stays.

It starts with the first template, and anew after a limit or a fork.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from agentgyms.core.errors import WorkerLost
from agentgyms.processes import Child
from harness.model.chat_templates import trusted
from harness.types.errors import ConfigError

CPU_S: Final = 5.0
"""CPU time that a template may take to be read, or to write a chat; a long chat takes
milliseconds."""

_WAIT_S: Final = 600.0
"""Seconds to wait for an answer: a busy machine is not the template's fault."""

_INHERITED: Final = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""Variables that the interpreter may need; others may be secrets."""

_PROGRAM: Final = Path(__file__).with_name("child.py")

_LIMITS: Final = {
    "time": f"takes longer than {CPU_S:g} s: it may loop without end",
    "memory": "takes too much memory, or is nested too deep",
    "depth": "calls or nests itself too deep: a macro may call itself without end",
    "text": "writes far more than the chat says",
}


class _Renderer:
    """The child and its lock: requests of several threads are answered one by one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: Child | None = None

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the reply, with the `limit` that the template reached if it reached one.

        Raises `WorkerLost` if two children in a row end otherwise.
        """
        with self._lock:
            try:
                return self._ask_once(request)
            except WorkerLost:  # it may have been killed by mistake
                return self._ask_once(request)

    def _ask_once(self, request: Mapping[str, Any]) -> dict[str, Any]:
        child = self._running()
        try:
            reply = child.ask(request)
        except WorkerLost:
            if child.exit_code != -signal.SIGPROF:
                raise
            return {"limit": "time"}
        if "limit" in reply:
            child.close("recycled")
        return reply

    def _running(self) -> Child:
        if self._child is not None and not self._child.alive:
            self._child.close()
            self._child = None
        if self._child is None:
            inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
            self._child = Child(
                [sys.executable, "-S", "-P", str(_PROGRAM)],
                limit_s=_WAIT_S,
                # jinja2 is where this process has it.
                environment=inherited | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                kind="chat-templates",
            )
        return self._child

    def close(self) -> None:
        """End the child at the end of this process, unless a thread that is left waits for it."""
        if self._lock.acquire(blocking=False):
            if self._child is not None:
                self._child.close()
            self._lock.release()


_renderer = _Renderer()


def _renew() -> None:
    """Leave the child to the process that this one was forked from."""
    global _renderer
    _renderer = _Renderer()


os.register_at_fork(after_in_child=_renew)
atexit.register(lambda: _renderer.close())


def _reply_here(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the reply as the child makes it, without its limits."""
    from harness.model.chat_templates import child  # reads jinja2

    try:
        return child.reply(request, sys.maxsize)
    except Exception as e:
        return child.failure(e)


def ask(request: Mapping[str, Any], whose: str) -> dict[str, Any]:
    """Return the reply of the child, or here for our templates; raise `ConfigError` at a limit."""
    try:
        is_trusted = request["template"] in trusted.TEXTS
        reply = _reply_here(request) if is_trusted else _renderer.ask({"cpu_s": CPU_S, **request})
    except WorkerLost as e:
        raise ConfigError(
            f"{whose} cannot be rendered, the process that does it was lost twice: {e}"
        ) from e
    if "limit" in reply:
        reached = _LIMITS[reply["limit"]]
        raise ConfigError(f"{whose} {reached}; use another model or mend its chat template")
    return reply
