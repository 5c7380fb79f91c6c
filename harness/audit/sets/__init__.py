"""The truth sets of this package, by name, and the settings by which each was made."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any, Final

from agentgyms.registration import short_name
from harness.types.errors import ConfigError
from harness.types.hyperparameters import unknown

_FOLDER: Final = Path(__file__).parent
_KIND: Final = "truth set"
_PLAYED: Final = ("env_args", "overrides", "noise")
"""Settings that say how the expert played, and not how much of it was measured."""


def find(given: str) -> Path:
    """Return the file of a truth set by its name here or by a path, or raise `ConfigError`."""
    path = Path(given)
    if given in _made():
        return _FOLDER / f"{given}.npz"
    if path.suffix or len(path.parts) > 1 or path.is_file():
        return path
    raise ConfigError(unknown(_KIND, given, list(_made())))


def settings(name: str) -> dict[str, Any]:
    """Return the parameters of `harness credit audit` for a truth set, and its `digest`."""
    if name not in _made():
        raise ConfigError(unknown(_KIND, name, list(_made())))
    return dict(_made()[name])


def names() -> list[str]:
    """Return the names of all truth sets."""
    return list(_made())


def as_played(env: str) -> tuple[str, dict[str, Any]]:
    """Return the newest truth set of an environment and its expert's settings: "" and {} if none.

    With these settings groups are mixed: the plain expert solves every rollout of an easy
    environment. `env` may leave out `agentgyms/` and the version.
    """
    found: tuple[str, dict[str, Any]] = "", {}
    for name, made in _made().items():
        if short_name(env).lower() in (made["env"].lower(), name.partition("-")[0]):
            found = name, {key: made[key] for key in _PLAYED if key in made}
    return found


@cache
def _made() -> dict[str, dict[str, Any]]:
    return tomllib.loads((_FOLDER / "made.toml").read_text(encoding="utf-8"))
