"""Writes the output files of several commands."""

from __future__ import annotations

from pathlib import Path

from agentgyms.cli.printing import echo, echo_data
from agentgyms.core.errors import not_written
from agentgyms.data.writing import write_named


def write(path: Path, text: str) -> None:
    """Write a text to a file and say so, or print it (`-`). Raises `BadOption` if it cannot."""
    if str(path) == "-":
        echo_data(text)
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_named(path, text, errors="replace")
    except OSError as e:
        raise not_written(path, e) from e
    echo(f"wrote {path}", err=True)
