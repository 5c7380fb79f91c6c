"""Landlock: restricts, in the kernel, the files that a process may open (Linux 5.13 and later).

An executor may read the interpreter's library and the shared libraries that it loads, nothing
else: no home, no /proc, no /etc, no installed packages but those that code may import. It cannot
write files, use TCP (Linux 6.7) or signal processes outside (Linux 6.12).
"""

from __future__ import annotations

import ctypes
import os
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

_CREATE_RULESET: Final = 444
_ADD_RULE: Final = 445
_RESTRICT_SELF: Final = 446
_EXECUTE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 2, 1 << 3
_READ: Final = _READ_FILE | _READ_DIR
# Number of file rights in each version of the interface; from 4 on there are also TCP's bind and
# connect, from 6 on the scopes of abstract sockets and signals.
_NUM_FILE_RIGHTS: Final = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
_NEWEST: Final = max(_NUM_FILE_RIGHTS)
_DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")
_OTHER_FILES: Final = ("/etc/ld.so.cache", "/usr/share/zoneinfo")

Rules = list[tuple[str, int]]


class _Ruleset(ctypes.Structure):
    _fields_ = [
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    ]


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = [("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32)]


def version() -> int:
    """Return the version of the kernel's interface, 0 if it is missing or disabled."""
    if sys.platform != "linux":
        return 0
    return max(int(_syscall(_CREATE_RULESET, None, 0, 1)), 0)


def ruleset(rules: Rules) -> int | None:
    """Return a ruleset's descriptor, None without Landlock; it denies all paths not in `rules`."""
    abi = version()
    if abi < 1:
        return None
    size = 8 if abi < 4 else 16 if abi < 6 else 24
    handled = _Ruleset((1 << _NUM_FILE_RIGHTS[min(abi, _NEWEST)]) - 1, 0b11, 0b11)
    descriptor = int(_syscall(_CREATE_RULESET, ctypes.byref(handled), size, 0))
    if descriptor < 0:
        return None
    for path, rights in rules:
        with suppress(OSError):
            _allow(descriptor, path, rights)
    return descriptor


def restrict(descriptor: int | None) -> int:
    """Apply a ruleset to this thread and those it starts, permanently; close its descriptor.

    Needs `no_new_privs`. Returns the interface's version, 0 if no ruleset is in force.
    """
    if descriptor is None:
        return 0
    failed = _syscall(_RESTRICT_SELF, descriptor, 0)
    os.close(descriptor)
    return 0 if failed else version()


def library_rules() -> Rules:
    """Return the rules that an interpreter needs for further imports."""
    rules: Rules = [(path, _READ) for path in _OTHER_FILES]
    rules += [(path, _READ_FILE) for path in _DEVICES]
    for library in {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}:
        rules.append((library, _READ_DIR))
        # Installed packages are inside it: all entries but these.
        rules += [
            (str(path), _READ | _EXECUTE)
            for path in Path(library).glob("*")
            if not path.name.endswith("-packages")
        ]
    rules += [(path, _READ_FILE | _EXECUTE) for path in _shared_libraries()]
    rules += [(path, _READ | _EXECUTE) for path in sorted(_imported_packages())]
    return rules


def _shared_libraries() -> Iterator[str]:
    """Yield the libraries in the folders of all loaded libraries."""
    with suppress(OSError):
        maps = Path("/proc/self/maps").read_text()
        loaded = [Path(line.split(maxsplit=5)[5]) for line in maps.splitlines() if ".so" in line]
        for folder in {path.parent for path in loaded if not _is_installed(path)}:
            yield from (str(path) for path in folder.glob("*.so*"))


def _imported_packages() -> set[str]:
    """Return the installed packages that are loaded, without AppWorld itself."""
    found = set()
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if not file or name.partition(".")[0] == "appworld" or not _is_installed(Path(file)):
            continue
        path = Path(file)
        if "." not in name or path.suffix == ".so":
            found.add(str(path.parent if path.name == "__init__.py" else path))
    return found


def _is_installed(path: Path) -> bool:
    return any(part.endswith("-packages") for part in path.parts)


def _allow(ruleset: int, path: str, rights: int) -> None:
    opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not Path(path).is_dir():
            rights &= ~_READ_DIR
        beneath = _PathBeneath(rights, opened)
        _syscall(_ADD_RULE, ruleset, 1, ctypes.byref(beneath), 0)
    finally:
        os.close(opened)


def _syscall(number: int, *arguments: object) -> int:
    try:
        return int(ctypes.CDLL(None, use_errno=True).syscall(number, *arguments))
    except AttributeError:
        return -1
