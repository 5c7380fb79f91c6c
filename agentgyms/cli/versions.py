"""The versions that decide an episode: the package's, and those of its data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import click

from agentgyms.cli.printing import echo
from agentgyms.core.env import TextEnv
from agentgyms.core.imports import __version__
from agentgyms.data import datasets
from agentgyms.registration import ENVIRONMENTS, make_text_env


def show(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Print the versions and end the program, as the callback of an option."""
    if wanted and not context.resilient_parsing:
        echo("\n".join(_lines()))
        context.exit()


def _lines() -> Iterator[str]:
    yield f"agentgyms, version {__version__}"
    yield "data that come with it:"
    for env_id in ENVIRONMENTS:
        with make_text_env(env_id) as env:
            yield f"  {env_id:28} {cast(TextEnv, env.unwrapped).data_version}"
    for status in datasets.status():
        if status.folder is not None:
            digests = (f"{split} {part.digest[:12]}" for split, part in status.parts.items())
            yield f"data set {status.name}: {status.damage or ', '.join(digests)}"
