"""Writes chats with a tokenizer's chat template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import jinja2

from harness.model.chat_templates import clock
from harness.model.chat_templates.arguments import (
    check_arguments,
    check_chance,
    reads_clock,
    texts_of,
)
from harness.model.chat_templates.limit import LIMIT_S, TemplateTooSlow, check_operators, limited
from harness.types.errors import ConfigError
from harness.types.messages import tools_of

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
