"""Imports by name: of a package's names, of what a user names; the packages of extras."""

from __future__ import annotations

import importlib
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

try:
    __version__ = version("agentgyms")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"

PUBLISHED: Final = False
"""Whether an index has this package. Pages say it too: `python .github/install_lines.py`."""

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


def lazy_names(package: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a `__getattr__` for `package`, which imports its public names when they are used.

    `names` has each module's names, separated by spaces; a module's own name stands for itself. So
    importing the package costs nothing, and only users of a name need its dependencies.
    """
    modules = {name: module for module, text in names.items() for name in text.split()}

    def attribute(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = importlib.import_module(modules[name])
        return module if modules[name].endswith(f".{name}") else getattr(module, name)

    return attribute


def import_named(module: str) -> Any:
    """Import and return a module that the user named, also one of the current folder.

    The folder joins `sys.path` at its end, and only for a module that exists nowhere else, so it
    never hides an installed module. Names in files from others must not be passed here.
    """
    top = module.partition(".")[0]
    if top.isidentifier() and top not in sys.modules and find_spec(top) is None:
        here = Path.cwd()
        if (here / f"{top}.py").is_file() or (here / top).is_dir():
            sys.path.append(str(here))
            importlib.invalidate_caches()
    return importlib.import_module(module)


def advice(error: ModuleNotFoundError, extra: str) -> str:
    """Return the install command, in one line; "" if the module is not a package of `extra`."""
    package = (error.name or "").partition(".")[0]
    if package not in PACKAGES[extra]:
        return ""
    return missing(package, extra)


def missing(package: str, extra: str) -> str:
    """Return the message that a package of an extra is not installed, in one line."""
    return f"{package} is not installed, run: {install(extra)}"


def install(extra: str) -> str:
    """Return the command that adds an extra to this installation, from any folder.

    An installed package needs no index that has it: pip adds what the extra asks for.
    """
    source = Path(__file__).resolve().parents[2]
    in_checkout = (source / "pyproject.toml").is_file()
    what = shlex.quote(f"{source if in_checkout else 'agentgyms'}[{extra}]")
    return f"pip install {'-e ' * in_checkout}{what}"


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
