"""Writes chats with a tokenizer's chat template, in a child process with limits (`process`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from agentgyms.core.errors import path_end, plain
from harness.config.allowed_values import nearest
from harness.model.chat_templates import clock, process
from harness.types.errors import ConfigError
from harness.types.messages import tools_of

_GIVEN: Final = frozenset({"messages", "tools", "documents", "add_generation_prompt"})
"""Variables that a rendering gives itself."""

_FUNCTIONS: Final = frozenset({"raise_exception", "namespace", "dict", clock.NAME})
"""Functions that a template is given."""

_OURS: Final = frozenset(
    {"tools", "token_ids", "without_thoughts", "calls", "call_id", "as_rendered"}
)
"""Fields of messages that are not the template's."""

_SPECIAL: Final = ("bos_token", "eos_token", "pad_token", "unk_token")
"""Special tokens that a template is given if the tokenizer has them."""

_USUAL: Final = "the model's chat template"
_MOST_CHARACTERS: Final = 1 << 20
_SHOWN_NAME: Final = 80
_SHOWN_REASON: Final = 300
_SHOWN_NAMES: Final = 1000


class ChatRefused(ConfigError):
    """A chat template raises an error for a chat; for another chat it may not."""


class _Inspection(NamedTuple):
    variables: frozenset[str]
    draws: bool  # it draws at random
    refers: bool  # it includes or imports other templates


def texts_of(template: Any, whose: str = _USUAL) -> tuple[str, ...]:
    """Return a tokenizer's chat templates; raise `ConfigError` if one is no text or too long."""
    texts = tuple(template.values()) if isinstance(template, Mapping) else (template,)
    for text in texts:
        if not isinstance(text, str):
            raise ConfigError(
                f"{whose} is {plain(repr(text), 60)}, expected text: mend its chat template"
            )
        if len(text) > _MOST_CHARACTERS:
            raise ConfigError(
                f"{whose} has {len(text):,} characters, more than {_MOST_CHARACTERS:,}: "
                "mend its chat template"
            )
    return texts


@lru_cache(32)
def _inspected(text: str, whose: str = _USUAL) -> _Inspection:
    reply = process.ask({"template": text}, whose)
    if "refused" in reply:
        raise ConfigError(f"{whose} is no Jinja template: {plain(reply['refused'], _SHOWN_REASON)}")
    return _Inspection(frozenset(reply["variables"]), reply["draws"], reply["refers"])


def reads_clock(template: Any) -> bool:
    """Return whether a chat template asks for the date."""
    return any(clock.NAME in _inspected(text).variables for text in texts_of(template))


def named(tokenizer: Any) -> str:
    """Return the words for a tokenizer's chat template in errors, with the model's name."""
    name = path_end(getattr(tokenizer, "name_or_path", ""), _SHOWN_NAME)
    return f"{_USUAL} ({name})" if name else _USUAL


def check(tokenizer: Any) -> None:
    """Refuse a chat template that is broken, reaches a limit, is random or refers to others."""
    whose = named(tokenizer)
    for text in texts_of(tokenizer.chat_template, whose):
        found = _inspected(text, whose)
        if found.draws:
            raise ConfigError(
                f"{whose} draws at random (random or lipsum), so equal chats would have different "
                "prompts: mend its chat template"
            )
        if found.refers:
            raise ConfigError(
                f"{whose} refers to other templates (include, import or extends), and there are "
                "none: use another model or mend its chat template"
            )


def check_arguments(
    template: Any, given: Mapping[str, Any], special_tokens: Collection[str]
) -> None:
    """Raise `ConfigError` if a template does not read an argument, or has it as a special token."""
    if not given:
        return
    read = frozenset[str]().union(*(_inspected(text).variables for text in texts_of(template)))
    known = read - _GIVEN - (_FUNCTIONS - {clock.NAME}) - set(special_tokens)
    for name, value in given.items():
        if name not in known:
            near = nearest(name, sorted(known))
            hint = f"; did you mean {near}?" if near else ""
            names = plain(", ".join(sorted(known)), _SHOWN_NAMES)
            expected = f"expected {names}" if known else "it has none"
            raise ConfigError(
                f"chat_template_kwargs: the model's chat template has no argument {name!r}: "
                f"{expected}{hint}"
            )
        if name == clock.NAME:
            clock.date_of(value)


class ChatTemplate:
    """A tokenizer's chat template with its arguments and, if it reads the clock, a fixed date."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._arguments: Mapping[str, Any] = {}
        self._date = clock.DATE
        self._whose = named(tokenizer)
        check(tokenizer)

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
        self._date = clock.date_of(given.get(clock.NAME, clock.DATE))

    @property
    def key(self) -> tuple[str, str]:
        """The template and its arguments, as keys of a cache."""
        return str(self._tokenizer.chat_template), repr(self._arguments)

    @property
    def date(self) -> str | None:
        """The date that the template gets; None if it does not read the clock."""
        if not reads_clock(self._tokenizer.chat_template):
            return None
        return self._date

    def render(self, messages: Sequence[Any], *, add_generation_prompt: bool = True) -> str:
        """Return the template's text of a chat.

        Raises `ChatRefused` if the template raises an error, `ConfigError` at a limit.
        """
        own, tools = self._tokenizer, tools_of(messages) or None
        if not messages:
            raise ChatRefused(f"{self._whose} refuses a chat: it has no messages")
        try:
            template = own.get_chat_template(tools=tools)
        except ValueError as e:  # of several templates, none is for this chat
            raise ChatRefused(
                f"{self._whose} refuses a chat: {plain(str(e), _SHOWN_REASON)}"
            ) from e
        values = {
            **own.special_tokens_map,
            **self._arguments,
            "messages": [_templates_own(message) for message in messages],
            "tools": tools,
            "documents": None,
            "add_generation_prompt": add_generation_prompt,
        }
        values.pop(clock.NAME, None)
        request = {"template": template, "date": self._date, "values": values}
        reply = process.ask(request, self._whose)
        if "refused" in reply:
            reason = plain(reply["refused"], _SHOWN_REASON)
            raise ChatRefused(f"{self._whose} refuses a chat: {reason}")
        return str(reply["text"])


def _templates_own(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message as a template reads it."""
    return {k: v for k, v in message.items() if k not in _OURS}
