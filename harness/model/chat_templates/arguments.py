"""The variables that a chat template reads, and a check of the arguments that it is given."""

from __future__ import annotations

from collections.abc import Collection, Mapping
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
