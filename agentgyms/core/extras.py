"""The packages of each extra of this distribution, and messages about missing ones."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_EVAL: Final = ("httpx2", "jinja2", "matplotlib", "pydantic")
_SERVER: Final = ("flask", "prometheus_client", "waitress", "werkzeug")

PACKAGES: Final = {
    "server": _SERVER,
    "browser": ("selenium", *_SERVER),
    "ray": ("ray", *_SERVER),
    "sotopia": ("httpx2",),
    "eval": _EVAL,
    "harness": (
        *_EVAL,
        "safetensors",
        "tensorboard",
        "tokenizers",
        "torch",
        "transformers",
    ),
}
"""Names under which the packages of each extra are imported."""


def advice(error: ModuleNotFoundError, extra: str) -> str:
    """Return the install command, in one line; "" if the module is not a package of `extra`."""
    package = (error.name or "").partition(".")[0]
    if package not in PACKAGES[extra]:
        return ""
    return missing(package, extra)


def missing(package: str, extra: str) -> str:
    """Return the message that a package of an extra is not installed, in one line."""
    return f"{package} is not installed, run: pip install 'agentgyms[{extra}]'"


@contextmanager
def needed(extra: str) -> Iterator[None]:
    """End the program with one line on stderr and status 2 if a package of `extra` is missing."""
    try:
        yield
    except ModuleNotFoundError as e:
        hint = advice(e, extra)
        if not hint:
            raise
        sys.stderr.write(f"error: {hint}\n")
        sys.exit(2)
