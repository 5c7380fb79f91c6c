"""Imports by name: those of a package when they are used, those that a user names."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def lazy_names(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a `__getattr__` for `package`, which imports its public names when they are used.

    `modules` has for each name the module that defines it, or that it is. So importing the package
    costs nothing, and only users of a name need its dependencies.
    """

    def attribute(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = importlib.import_module(modules[name])
        return module if modules[name].endswith(f".{name}") else getattr(module, name)

    return attribute


def import_named(module: str) -> Any:
    """Import and return a module that the user named, also one of the current folder.

    Installed programs do not search the current folder. It joins `sys.path` at the end, once the
    user has named a module that exists only there, so it never hides an installed module. Names in
    files from others must not be passed here.
    """
    top = module.partition(".")[0]
    if top.isidentifier() and top not in sys.modules and find_spec(top) is None:
        here = Path.cwd()
        if (here / f"{top}.py").is_file() or (here / top).is_dir():
            sys.path.append(str(here))
            importlib.invalidate_caches()
    return importlib.import_module(module)
