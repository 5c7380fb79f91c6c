"""Command line: `harness train --engine verl`."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from agentgyms.cli.printing import echo

if TYPE_CHECKING:
    from pathlib import Path


def train(
    recipe: str,
    overrides: Sequence[str],
    verl_settings: Sequence[str],
    *,
    print_config: bool,
) -> Path | None:
    """Train a recipe with verl and return the run's folder, or print both configurations."""
    from harness import config as configs
    from harness.preflight import defaults
    from harness.training.verl import run, settings

    config = configs.load(recipe, overrides)
    further = dict(map(_setting, verl_settings))
    if print_config:
        shown = {
            "harness": configs.to_dict(defaults.resolve(config, "cuda")),
            "verl": settings.translate(config) | further,
        }
        echo(json.dumps(shown, indent=1))
        return None
    return run.start(config, further)


def _setting(text: str) -> tuple[str, Any]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise click.UsageError(f"--verl takes KEY=VALUE, got {text!r:.80}")
    try:
        return name, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return name, value
