"""Code from outside the package: modules that register methods, losses, annotators and rewards.

A plug-in registers its parts when it is imported. It is imported because a recipe (`run.plugins`)
or a setting (`module:name`) names it, or an installed package has an entry point for it in the
group `agentgyms.plugins`. A module may be named by the path of its file, `folder/file.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import cache
from importlib import metadata, util
from pathlib import Path
from typing import Any, Final

from agentgyms.core.errors import BadOption
from agentgyms.core.imports import import_named
from agentgyms.registration import full_id
from harness.types.errors import ConfigError

GROUP: Final = "agentgyms.plugins"
"""Entry points of installed plug-ins: each names a module."""

_FOUND: Final = "installed, in a folder of PYTHONPATH or in the current one"


def load(modules: Iterable[str]) -> None:
    """Import plug-ins; a `ConfigError` has the error of a module that cannot be imported."""
    for name in modules:
        _module(name)


@cache
def _not_loaded() -> list[metadata.EntryPoint]:
    return list(metadata.entry_points(group=GROUP))


def load_installed() -> None:
    """Import the plug-ins of installed packages, once, also if one of them calls this."""
    waiting = _not_loaded()
    while waiting:
        entry = waiting.pop(0)
        try:
            entry.load()
        except Exception as e:  # a plug-in may raise anything
            waiting.insert(0, entry)
            owner = entry.dist.name if entry.dist else "a package"
            raise ConfigError(
                f"the plug-in {entry.name} ({entry.value}) of {owner} cannot be loaded: "
                f"{type(e).__name__}: {e}"
            ) from e


def named(name: str) -> Any:
    """Return the object named `module:attribute` or `file.py:attribute`."""
    module, _, attribute = name.partition(":")
    found = _module(module)
    if not hasattr(found, attribute):
        raise ConfigError(f"{name!r}: the module {module} has no {attribute!r}")
    return getattr(found, attribute)


def find_environment(env_id: str) -> str:
    """Return the full id of an environment; see `agentgyms.registration.full_id`."""
    try:
        return full_id(env_id)
    except BadOption as e:
        load_installed()
        try:
            return full_id(env_id)
        except BadOption:
            raise ConfigError(f"env.id: {e}") from None
    except Exception as e:  # a module may raise anything
        raise ConfigError(
            f"env.id {env_id} cannot be made: {type(e).__name__}: {e}; its module must be {_FOUND}"
        ) from e


def _module(name: str) -> Any:
    try:
        return _load_file(name) if name.endswith(".py") else import_named(name)
    except Exception as e:  # a plug-in may raise anything
        raise ConfigError(
            f"the plug-in {name!r} cannot be imported: {type(e).__name__}: {e}; it must be a "
            f"module that Python finds: {_FOUND}, or a file, folder/file.py"
        ) from e


def _load_file(given: str) -> Any:
    """Return the module of a file; its name is its path, which no other module has."""
    path = Path(given).resolve(strict=True)
    name = str(path)
    if name not in sys.modules:
        spec = util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = util.module_from_spec(spec)
        try:
            spec.loader.exec_module(sys.modules[name])
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]
