"""Packages that come with an extra of this distribution, and what is said where one is missing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_EVAL: Final = ("httpx2", "jinja2", "matplotlib")
_SERVER: Final = ("flask", "prometheus_client", "waitress", "werkzeug")

PACKAGES: Final = {
    "server": _SERVER,
    "browser": ("selenium", *_SERVER),
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
    """Return what to install, in one line; "" if what is missing is no package of `extra`."""
    package = (error.name or "").partition(".")[0]
    if package not in PACKAGES[extra]:
        return ""
    return missing(package, extra)


def missing(package: str, extra: str) -> str:
    """Return that a package is not installed, and the extra that brings it, in one line."""
    return f"{package} is not installed, run: pip install 'agentgyms[{extra}]'"


@contextmanager
def needed(extra: str) -> Iterator[None]:
    """End the program with one line on stderr and status 2 if a package of `extra` is missing."""
    try:
        yield
    except ModuleNotFoundError as e:
        said = advice(e, extra)
        if not said:
            raise
        sys.stderr.write(f"error: {said}\n")
        sys.exit(2)
