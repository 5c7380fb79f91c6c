"""Writes chats with a tokenizer's chat template, in limited CPU time: it may loop without end.

A thread watches those that render a template, and raises `TemplateTooSlow` in one that has used up
its CPU time. CPU time does not pass while a thread waits for a busy machine.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import jinja2
import jinja2.meta
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser

from harness.config.allowed_values import nearest
from harness.model.chat_templates import clock
from harness.types.errors import ConfigError
from harness.types.messages import tools_of

_GIVEN: Final = frozenset({"messages", "tools", "documents", "add_generation_prompt"})
"""Variables that a rendering gives itself."""

_FUNCTIONS: Final = frozenset({"raise_exception", "namespace", "dict", clock.NAME})
"""Functions that transformers gives a template."""


class _Generation(Extension):
    """The block `{% generation %}`, by which transformers finds the assistant's tokens."""

    tags = {"generation"}  # noqa: RUF012 (jinja2's own attribute)

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """Return the text inside the block."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


_JINJA: Final = jinja2.Environment(  # noqa: S701 (nothing is rendered)
    trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols]
)
_JINJA.globals.pop("lipsum", None)  # so that it shows among the variables


def texts_of(template: Any) -> tuple[str, ...]:
    """Return the texts of a tokenizer's chat template, which may be several by name."""
    if isinstance(template, Mapping):
        return tuple(map(str, template.values()))
    return (str(template),)


@lru_cache(32)
def _parsed(text: str) -> nodes.Template:
    try:
        return _JINJA.parse(text)
    except jinja2.TemplateError as e:
        raise ConfigError(f"the model's chat template is no Jinja template: {e}") from e


@lru_cache(32)
def _variables(text: str) -> frozenset[str]:
    return frozenset(jinja2.meta.find_undeclared_variables(_parsed(text)))


def reads_clock(template: Any) -> bool:
    """Return whether a chat template asks for the date."""
    return any(clock.NAME in _variables(text) for text in texts_of(template))


def check_chance(template: Any) -> None:
    """Refuse a chat template that draws random texts."""
    for text in texts_of(template):
        used = {found.name for found in _parsed(text).find_all(nodes.Filter)}
        if "random" in used or "lipsum" in _variables(text):
            raise ConfigError(
                "the model's chat template draws at random (random or lipsum), so equal chats "
                "would have different prompts: mend its chat template"
            )


def check_arguments(
    template: Any, given: Mapping[str, Any], special_tokens: Collection[str]
) -> None:
    """Refuse arguments that a chat template does not read, which would have no effect.

    `special_tokens` are names such as `bos_token`, which transformers passes. Raises a
    `ConfigError` that lists the arguments that the template reads.
    """
    if not given:
        return
    read = frozenset[str]().union(*map(_variables, texts_of(template)))
    known = read - _GIVEN - (_FUNCTIONS - {clock.NAME}) - set(special_tokens)
    for name, value in given.items():
        if name not in known:
            near = nearest(name, sorted(known))
            hint = f"; did you mean {near}?" if near else ""
            expected = f"expected {', '.join(sorted(known))}" if known else "it has none"
            raise ConfigError(
                f"chat_template_kwargs: the model's chat template has no argument {name!r}: "
                f"{expected}{hint}"
            )
        if name == clock.NAME:
            clock.date_of(value)


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


_OF_PYTHON: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Errors that a template may run into."""

_SPECIAL: Final = ("bos_token", "eos_token", "pad_token", "unk_token")
"""Special tokens that a template is given if the tokenizer has them."""


class ChatTemplate:
    """A tokenizer's chat template with its arguments.

    A template that reads the clock gets a fixed date (`clock`), the same in each prompt.
    """

    def __init__(self, tokenizer: Any) -> None:
        """Raise `ConfigError` for a template that must not be rendered."""
        self._tokenizer = tokenizer
        self._arguments: Mapping[str, Any] = {}
        for text in texts_of(tokenizer.chat_template):
            check_operators(text)
        check_chance(tokenizer.chat_template)

    @property
    def arguments(self) -> Mapping[str, Any]:
        """Further arguments, such as `enable_thinking`; `strftime_now` is the date that it gets."""
        return self._arguments

    @arguments.setter
    def arguments(self, given: Mapping[str, Any]) -> None:
        """Raise `ConfigError` for an argument that the template does not read."""
        own = self._tokenizer
        check_arguments(own.chat_template, given, {*own.special_tokens_map, *_SPECIAL})
        self._arguments = given

    @property
    def key(self) -> tuple[str, str]:
        """The template and its arguments, as keys of a cache."""
        return str(self._tokenizer.chat_template), repr(self._arguments)

    @property
    def date(self) -> str | None:
        """The date that the template gets; None if it does not read the clock."""
        if not reads_clock(self._tokenizer.chat_template):
            return None
        return clock.date_of(self._arguments.get(clock.NAME, clock.DATE))

    def render(self, messages: Sequence[Any], *, add_generation_prompt: bool = True) -> str:
        """Return the template's text of a chat."""
        tools = tools_of(messages)
        plain = [{k: v for k, v in message.items() if k != "tools"} for message in messages]
        given = {k: v for k, v in self._arguments.items() if k != clock.NAME}
        if tools:
            given["tools"] = tools
        date = self.date
        if date is not None:
            own = self._tokenizer.get_chat_template(tools=tools or None)
            given["chat_template"] = clock.with_date(own, date)
        try:
            with limited():
                text = self._tokenizer.apply_chat_template(
                    plain, tokenize=False, add_generation_prompt=add_generation_prompt, **given
                )
        except TemplateTooSlow:
            raise ConfigError(
                f"the model's chat template takes longer than {LIMIT_S:g} s for a chat: it may "
                "loop without end; use another model or mend its chat template"
            ) from None
        except (jinja2.TemplateError, *_OF_PYTHON) as e:
            raise ConfigError(f"the model's chat template refuses a chat: {e}") from e
        return str(text)
