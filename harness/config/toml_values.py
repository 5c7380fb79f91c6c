"""Values of settings given on the command line."""

from __future__ import annotations

import tomllib
from typing import Any

from harness.types.errors import ConfigError


def parse_value(text: str, name: str) -> Any:
    """Return what a text stands for in TOML, or else the text.

    Args:
        text: The part of an override after the equals sign.
        name: The part before it, for the error.

    Raises:
        ConfigError: It is nested too deeply.
    """
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except ValueError:
        return text
    except RecursionError:
        raise ConfigError(f"the value of {name!r:.80} is nested too deeply") from None
