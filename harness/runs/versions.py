"""Versions of the package, its source and the libraries it uses."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

import agentgyms
from agentgyms.recording.recorder import git_revision

_LIBRARIES: Final = ("torch", "transformers", "vllm", "numpy", "gymnasium")


def versions() -> dict[str, Any]:
    """Return the versions; "" for a library that is not installed."""
    return {
        "agentgyms": agentgyms.__version__,
        "revision": git_revision(),
        "python": platform.python_version(),
        "libraries": {name: _version(name) for name in _LIBRARIES},
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
