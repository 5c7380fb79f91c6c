"""Values of settings given on the command line."""

from __future__ import annotations

import tomllib
from typing import Any

from harness.types.errors import ConfigError


def parse_value(text: str, name: str) -> Any:
    """Return an override's TOML value, or else its text; `ConfigError` if nested too deeply."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except ValueError:
        return text
    except RecursionError:
        raise ConfigError(f"the value of {name!r:.80} is nested too deeply") from None
