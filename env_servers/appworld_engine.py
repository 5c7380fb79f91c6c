"""`python -m env_servers.appworld_engine`: unpack AppWorld's apps, then serve an environment.

For containers whose image may hold the apps only encrypted, and whose files cannot be written. A
copy of the package in a temporary folder receives the apps.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from agentgyms.envs.appworld.sandbox.install import PYTHON_VARIABLE

PACKED: Final = Path("/opt/appworld")
"""The environment into which the image has installed AppWorld."""

_LIMIT_S: Final = 120


def unpack(packed: Path, folder: Path) -> Path:
    """Make an environment of `packed` with AppWorld's apps in `folder`; return its interpreter.

    The old content of `folder` is deleted. Raises `FileNotFoundError` if `packed` has no AppWorld
    as pip installs it, `CalledProcessError` if a step failed.
    """
    found = next(packed.glob("lib/python*/site-packages/appworld"), None)
    if found is None:
        raise FileNotFoundError(
            f"{packed} has no package appworld: build the image with --build-arg APPWORLD=yes"
        )
    old = found.parent
    shutil.rmtree(folder, ignore_errors=True)
    _run(packed / "bin/python", "-m", "venv", "--without-pip", str(folder))
    new = folder / old.relative_to(packed)
    shutil.copytree(found, new / "appworld")
    (new / "packed.pth").write_text(f"{old}\n")
    python = folder / "bin/python"
    _run(python, "-m", "appworld.cli", "install", APPWORLD_CACHE=str(folder / "cache"))
    # Every process that starts the engine would compile the apps, as none may write beside them.
    _run(python, "-m", "compileall", "-q", str(new / "appworld"))
    return python


def _run(python: Path, *arguments: str, **variables: str) -> None:
    subprocess.run(
        [python, *arguments],
        env={"PATH": os.environ.get("PATH", ""), "HOME": tempfile.gettempdir()} | variables,
        cwd=tempfile.gettempdir(),
        stdout=subprocess.DEVNULL,
        check=True,
        timeout=_LIMIT_S,
    )


def main() -> None:
    """Unpack, and become the server, with the same arguments."""
    try:
        python = unpack(PACKED, Path(tempfile.gettempdir(), "appworld-engine"))
    except (OSError, subprocess.SubprocessError) as e:
        sys.exit(f"AppWorld's apps cannot be unpacked: {e}")
    os.environ[PYTHON_VARIABLE] = str(python)
    command = [sys.executable, "-m", "env_servers", *sys.argv[1:]]
    os.execv(sys.executable, command)  # noqa: S606 (no shell is wanted)


if __name__ == "__main__":
    main()
