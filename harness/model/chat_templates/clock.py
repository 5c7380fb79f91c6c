"""The date in a chat template: a fixed one, in place of the computer's clock.

Templates ask with `strftime_now(format)`, which transformers answers by the clock: the prompts of a
run would change at midnight. A macro of the same name in front of the template answers instead. It
works with any version of transformers, which gives a template no functions of others.
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from harness.types.errors import ConfigError

NAME: Final = "strftime_now"
"""Function of chat templates, and the argument of `chat_template_kwargs` with another date."""

DATE: Final = "2024-07-26"
"""The date without such an argument: the one that Llama 3.1's template falls back on."""

_CODES: Final = "aAbBcCdDeFgGhHIjklmMnpPrRStTuUVwWxXyY"
"""Directives of strftime that tell a date and a time, without time zones."""
_FLAGGED: Final = re.compile(f"%[-_^#0][{_CODES}]")
_PERCENT: Final = ("%%", r"\x00"), (r"\x00", "%")


def date_of(given: Any) -> str:
    """Return a date that was given as one; raise `ConfigError` if it is none."""
    try:
        return datetime.strptime(given, "%Y-%m-%d").strftime("%Y-%m-%d")
    except (TypeError, ValueError):
        raise ConfigError(
            f"chat_template_kwargs: {NAME} is {given!r:.60}, expected the date that the chat "
            f'template is told, such as "{DATE}"'
        ) from None


@lru_cache(8)
def with_date(template: str, date: str) -> str:
    """Return a template that gets this date, at midnight, from `strftime_now`."""
    told = datetime.strptime(date, "%Y-%m-%d")
    codes = [f"%{code}" for code in _CODES]
    values = [(code, told.strftime(code)) for code in {*_FLAGGED.findall(template), *codes}]
    changes = [_PERCENT[0], *sorted(values), _PERCENT[1]]
    replaced = "".join(f" | replace({_quoted(old)}, {_quoted(new)})" for old, new in changes)
    # The newline is trimmed, as after each block; the template's own first line stays one.
    return f"{{% macro {NAME}(format) %}}{{{{ format{replaced} }}}}{{% endmacro %}}\n{template}"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", r"\'").replace("\n", r"\n").replace("\t", r"\t") + "'"
