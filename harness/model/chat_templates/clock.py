"""The date for `strftime_now` in chat templates: fixed, or prompts would change at midnight."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from harness.types.errors import ConfigError

NAME: Final = "strftime_now"
"""Function of chat templates, and the argument of `chat_template_kwargs` with another date."""

DATE: Final = "2024-07-26"
"""The date without such an argument: the one that Llama 3.1's template falls back on."""


def date_of(given: Any) -> str:
    """Return a date that was given as one; raise `ConfigError` if it is none."""
    try:
        return datetime.strptime(given, "%Y-%m-%d").date().isoformat()
    except (TypeError, ValueError):
        raise ConfigError(
            f"chat_template_kwargs: {NAME} is {given!r:.60}, expected the date that the chat "
            f'template is told, such as "{DATE}"'
        ) from None
