"""A limit on the CPU time of a chat template, which may loop without end.

A thread watches those that render a template, and raises `TemplateTooSlow` in one that has used up
its CPU time. CPU time does not pass while a thread waits for a busy machine.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import jinja2

from harness.types.errors import ConfigError

LIMIT_S: Final = 30.0
"""CPU time of one rendering in seconds. A long chat takes milliseconds; a garbage collection that
falls into it counts too, and takes seconds where a process has gigabytes of small objects."""

_TICK_S: Final = 0.25
_raise_in_thread: Final = ctypes.pythonapi.PyThreadState_SetAsyncExc


class TemplateTooSlow(Exception):
    """A rendering used more CPU time than `LIMIT_S`."""


@dataclass(slots=True, eq=False)
class _Rendering:
    """A rendering under way: its thread's clock, and whether the limit has been enforced."""

    thread: int
    clock: int
    deadline: float
    stopped: bool = False

    def stop_if_overdue(self) -> None:
        if not self.stopped and time.clock_gettime(self.clock) > self.deadline:
            self.stopped = True
            _raise_in_thread(ctypes.c_ulong(self.thread), ctypes.py_object(TemplateTooSlow))


class _Watch:
    """Watches renderings from a thread that starts with the first one.

    A plain lock is used: `with` on it cannot be interrupted between acquiring and the block.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._renderings: list[_Rendering] = []
        self._thread: threading.Thread | None = None

    def add(self, rendering: _Rendering) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True, name="templates")
                self._thread.start()
            self._renderings.append(rendering)

    def remove(self, rendering: _Rendering) -> None:
        with self._lock:
            if rendering in self._renderings:
                self._renderings.remove(rendering)
            if rendering.stopped:  # it may have ended just before the exception came
                _raise_in_thread(ctypes.c_ulong(rendering.thread), None)

    def _run(self) -> None:
        while True:
            with self._lock:
                for rendering in self._renderings:
                    rendering.stop_if_overdue()
            time.sleep(_TICK_S)


_watches = [_Watch()]


def _renew() -> None:
    """Replace the watch in a forked child, where its thread does not run."""
    _watches[0] = _Watch()


os.register_at_fork(after_in_child=_renew)


@contextmanager
def limited() -> Iterator[None]:
    """Raise `TemplateTooSlow` if the `with` block takes more than `LIMIT_S` of CPU time."""
    thread = threading.get_ident()
    clock = time.pthread_getcpuclockid(thread)
    rendering = _Rendering(thread, clock, time.clock_gettime(clock) + LIMIT_S)
    watch = _watches[0]
    try:
        watch.add(rendering)
        yield
    finally:
        _remove(watch, rendering)


def _remove(watch: _Watch, rendering: _Rendering) -> None:
    """Remove a rendering that has ended, even if it is stopped only now."""
    while True:
        try:
            watch.remove(rendering)
        except TemplateTooSlow:
            continue
        return


def check_operators(template: str) -> None:
    """Refuse a template that computes powers, which no limit interrupts."""
    try:
        tokens = list(jinja2.Environment().lex(template))  # noqa: S701 (nothing is rendered)
    except jinja2.TemplateError as e:
        raise ConfigError(f"the model's chat template is no Jinja template: {e}") from e
    if any(kind == "operator" and value == "**" for _, kind, value in tokens):
        raise ConfigError("the model's chat template computes powers (**), which no chat needs")
