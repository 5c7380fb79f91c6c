"""The option `--set KEY=VALUE`: arguments of an environment."""

from __future__ import annotations

import json
from typing import Any

import click

from agentgyms.core.errors import BadOption

set_option = click.option(
    "--set", "pairs", multiple=True, metavar="KEY=VALUE", help="Argument of make."
)


def parsed(pairs: tuple[str, ...]) -> dict[str, Any]:
    """Parse `key=value` pairs as keyword arguments; a value is JSON, or else text."""
    settings: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals:
            raise BadOption(f"a setting has the form key=value, got {pair!r}")
        try:
            settings[key] = json.loads(text)
        except ValueError:
            settings[key] = text
        except RecursionError:
            raise BadOption(f"the value of {key!r:.80} is nested too deeply") from None
    return settings
