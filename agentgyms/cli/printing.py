"""Prints: every text of the programs passes here, so that nobody else's text steers a terminal."""

from __future__ import annotations

import logging
import sys
from typing import Any

import click

from agentgyms.core.errors import visible


def echo(text: object = "", *, err: bool = False, nl: bool = True, **style: Any) -> None:
    """Print a text with its control characters escaped; newlines and tabs stay."""
    click.secho(visible(str(text)), err=err, nl=nl, **style)


def echo_styled(text: str) -> None:
    """Print a text with styles of its own; words of others in it are escaped already."""
    click.echo(text)


def echo_data(text: str) -> None:
    """Print rows for programs, unchanged unless a terminal shows them."""
    shown = sys.stdout is not None and sys.stdout.isatty()
    click.echo(visible(text) if shown else text, nl=False)


class _Formatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))


def log_handler(form: str | None = None) -> logging.Handler:
    """Return a handler that writes messages to the standard error stream, as `echo` does."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Formatter(form))
    return handler
