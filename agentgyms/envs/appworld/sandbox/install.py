"""Installs and finds the real engine, which has a separate virtual environment.

AppWorld pins pydantic 1 and other packages, so no interpreter has both it and this package. The
files that `appworld install` unpacks must not be published in plain text: they are unpacked where
they are used.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from gymnasium.error import DependencyNotInstalled

from agentgyms.core.errors import BadOption, EnvUnavailable
from agentgyms.data import datasets
from agentgyms.data.folders import lock_folder
from agentgyms.envs.appworld.sandbox.forkserver import role_environment

VERSION: Final = "0.1.3.post1"
"""The version of AppWorld that this package works with."""

PYTHON_VARIABLE: Final = "AGENTGYMS_APPWORLD_PYTHON"
"""Environment variable: the interpreter that has appworld, instead of the one of `install`."""

OLDEST_PYTHON: Final = (3, 11)

_ADVICE: Final = (
    "install it with `agentgyms setup appworld`, or set "
    f"{PYTHON_VARIABLE} to the interpreter of an environment that has it"
)
_PROBE_LIMIT_S: Final = 60.0

_PROBE: Final = """
import importlib.metadata, importlib.util, os, sys
try:
    version = importlib.metadata.version("appworld")
except importlib.metadata.PackageNotFoundError:
    print("missing")
    sys.exit()
folder = os.path.dirname(importlib.util.find_spec("appworld").origin)
unpacked = os.path.exists(os.path.join(folder, "apps", "supervisor", "apis.py"))
print(version if unpacked else "packed")
"""


def folder() -> Path:
    """Return the default folder of the engine's virtual environment."""
    return datasets.home() / "appworld-engine"


def interpreter(environment: Path) -> Path:
    """Return the interpreter of a virtual environment."""
    return environment / "bin" / "python"


def python() -> str:
    """Return the interpreter that has AppWorld.

    Raises `DependencyNotInstalled` if there is none, or its AppWorld has another version or is
    not unpacked.
    """
    from_environment = os.environ.get(PYTHON_VARIABLE)
    if not from_environment and not interpreter(folder()).exists():
        raise DependencyNotInstalled(f"engine='appworld' needs AppWorld {VERSION}: {_ADVICE}")
    found = from_environment or str(interpreter(folder()))
    check(found)
    return found


@functools.lru_cache(maxsize=8)
def check(executable: str) -> None:
    """Check, once a process, that a Python has AppWorld; raise `DependencyNotInstalled` if not."""
    found = _probe(executable)
    if found == "missing":
        raise DependencyNotInstalled(f"{executable} has no appworld: {_ADVICE}")
    if found == "packed":
        raise DependencyNotInstalled(
            f"the appworld of {executable} is not unpacked: run `{executable} -m appworld.cli "
            "install`, or `agentgyms setup appworld`"
        )
    if found != VERSION:
        raise DependencyNotInstalled(
            f"{executable} has appworld {found}, expected {VERSION}: {_ADVICE}"
        )


def _probe(executable: str) -> str:
    """Return the version of an interpreter's unpacked AppWorld, or `missing`, or `packed`."""
    try:
        done = subprocess.run(
            [executable, "-I", "-c", _PROBE],
            capture_output=True,
            text=True,
            timeout=_PROBE_LIMIT_S,
            env=role_environment(),
            cwd="/",
        )
    except (OSError, subprocess.TimeoutExpired) as e:
        raise DependencyNotInstalled(f"{executable} cannot be run ({e}): {_ADVICE}") from None
    if done.returncode:
        why = done.stderr.strip().rpartition("\n")[2]
        raise DependencyNotInstalled(f"{executable} is not a usable Python ({why}): {_ADVICE}")
    return done.stdout.strip()


def install(target: Path | None = None, base: str | None = None) -> Path:
    """Make a virtual environment with AppWorld at `target`, and return its interpreter.

    An interrupted installation is completed. `base` is the interpreter to make it from. Raises
    `BadOption` if that is not Python 3.11 or later, and `EnvUnavailable` if a step failed, or
    another process is installing here.
    """
    target = (target or folder()).absolute()
    base = base or sys.executable
    _check_base(base)
    target_python = interpreter(target)
    with lock_folder(target):
        if not _is_installed(target_python):
            _step("make a virtual environment", [base, "-m", "venv", str(target)])
            _step(
                f"install appworld {VERSION}",
                [
                    str(target_python),
                    "-m",
                    "pip",
                    "install",
                    "--progress-bar=off",
                    f"appworld=={VERSION}",
                ],
            )
            _step(
                "unpack AppWorld's apps",
                [str(target_python), "-m", "appworld.cli", "install"],
                # The tests that it unpacks beside the apps are for its authors.
                APPWORLD_CACHE=str(target / "appworld-cache"),
                APPWORLD_ROOT=str(target),
            )
    check.cache_clear()
    check(str(target_python))
    return target_python


def _is_installed(executable: Path) -> bool:
    try:
        return executable.exists() and _probe(str(executable)) == VERSION
    except DependencyNotInstalled:
        return False


def _check_base(base: str) -> None:
    code = "import sys; print(*sys.version_info[:2])"
    try:
        done = subprocess.run(
            [base, "-I", "-c", code], capture_output=True, text=True, timeout=_PROBE_LIMIT_S
        )
        version = tuple(map(int, done.stdout.split()))
    except (OSError, ValueError, subprocess.TimeoutExpired) as e:
        raise BadOption(f"--python {base} cannot be run: {e}") from None
    if version < OLDEST_PYTHON:
        raise BadOption(
            f"--python {base} is Python {'.'.join(map(str, version)) or 'of no known version'}: "
            "AppWorld needs 3.11 or later"
        )


def _step(what: str, command: Sequence[str], **variables: str) -> None:
    done = subprocess.run(command, env={**os.environ, **variables}, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise EnvUnavailable(
            f"could not {what}: `{' '.join(command)}` ended with {done.returncode}; its output "
            "is above. Repair that and run the same command again: finished steps are not repeated"
        )


def download(executable: str, target: Path) -> Path:
    """Download the data into an empty folder with AppWorld's command; return the folder."""
    _step(
        "download AppWorld's data",
        [executable, "-m", "appworld.cli", "download", "data", "--root", str(target)],
        APPWORLD_ROOT=str(target),
        APPWORLD_CACHE=str(target / "cache"),
    )
    if not (target / "data").is_dir():
        raise EnvUnavailable(
            "could not download AppWorld's data: the output is above. Run the same command again "
            "with a network, or import a folder with `data`: agentgyms setup appworld --data PATH"
        )
    return target
