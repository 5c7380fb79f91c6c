"""AppWorld's lists of modules that code may import, and of functions that do nothing in it."""

from __future__ import annotations

import functools
import importlib
import io
import pathlib
from contextlib import suppress
from typing import Any, Final

_MODULES: Final = """
    appworld array bisect builtins calendar collections contextlib copy csv datetime difflib enum
    fractions functools heapq itertools json math numbers operator os pathlib pendulum pprint random
    re string textwrap time typing unittest uuid yaml
"""
_FUNCTIONS: Final = {
    "builtins": "exit quit open breakpoint",
    "sys": "exit",
    "os": """
        _exit open read write close walk kill system putenv remove removedirs rmdir fchdir setuid
        fork forkpty killpg rename renames truncate replace unlink fchmod fchown chmod chown chroot
        lchflags lchmod lchown chdir listdir
    """,
    "io": "open write",
    "shutil": """
        rmtree move chown copy copy2 copyfile copytree make_archive get_archive_formats
    """,
    "subprocess": "Popen call check_call check_output run getoutput getstatusoutput",
    "pathlib.Path": """
        open write_text read_bytes write_bytes unlink rmdir rename replace chmod lchmod chown lchown
        symlink_to link_to touch mkdir expanduser
    """,
    "fileinput": "input filename nextfile close",
    "glob": "glob iglob",
    "json": "dump load",
    "tempfile": "mktemp mkdtemp mkstemp NamedTemporaryFile TemporaryDirectory",
    "zipfile": "ZipFile",
    "shelve": "open",
    "dbm": "open close",
    "pickle": "dump load",
    "codecs": "open",
    "sqlite3": "connect",
    "bz2": "open",
    "gzip": "open",
    "tarfile": "open",
    "csv": "reader writer DictReader DictWriter",
    "time": "sleep",
    "pdb": "set_trace",
}
_READ_ONLY: Final = ("builtins.open", "io.open", "pathlib.Path.open")

MODULES: Final = frozenset(_MODULES.split())
"""The modules that code may import."""

FUNCTIONS: Final = frozenset(
    f"{owner}.{name}" for owner, names in _FUNCTIONS.items() for name in names.split()
)
"""The functions that code must not call; they do nothing if it does."""

_open: Final = io.open
_open_path: Final = pathlib.Path.open


class SafetyGuard:
    """Makes the functions that stand for the forbidden ones, under the names that they print."""

    def enable(self) -> dict[str, Any]:
        """Return the functions by path; `builtins.open` and its like read only."""

        def disabled_function() -> Any:
            def _disabled_function(*args: Any, **kwargs: Any) -> None:
                pass

            return _disabled_function

        def read_only_open(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
            if set(mode) & set("wax+"):
                raise PermissionError("Writing to OS file system is disabled.")
            return _open(file, mode, *args, **kwargs)

        def read_only_path_open(self: Any, *args: Any, **kwargs: Any) -> Any:
            if "mode" in kwargs:
                kwargs["mode"] = "r"
            else:
                args = ("r", *args[1:])
            return _open_path(self, *args, **kwargs)

        opening: dict[str, Any] = dict.fromkeys(_READ_ONLY, read_only_open)
        opening["pathlib.Path.open"] = read_only_path_open
        return {path: disabled_function() for path in FUNCTIONS} | opening


@functools.wraps(_open)
def ipythons_open(file: Any, *args: Any, **kwargs: Any) -> Any:
    """Open a file, as the function `open` of IPython does, which AppWorld's code sees."""
    if file in {0, 1, 2}:
        raise ValueError(
            f"IPython won't let you open fd={file} by default as it is likely to crash IPython. "
            "If you know what you are doing, you can use builtins' open."
        )
    return _open(file, *args, **kwargs)


def load() -> None:
    """Import the modules of the forbidden functions, once for all children."""
    for owner in _FUNCTIONS:
        with suppress(ImportError):  # Python may have been built without it
            importlib.import_module(owner.partition(".")[0])


def disable() -> None:
    """Replace the forbidden functions in their modules, as AppWorld does while code runs."""
    for path, function in SafetyGuard().enable().items():
        owner, _, name = path.rpartition(".")
        module, _, kind = owner.partition(".")
        with suppress(ImportError):
            found = importlib.import_module(module)
            setattr(getattr(found, kind) if kind else found, name, function)
