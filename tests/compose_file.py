"""compose.yaml as the compose that is installed can read it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

DOCKER = Path(__file__).parents[1] / "docker"


def is_second_generation() -> bool:
    """Return whether `docker compose` is installed."""
    words = ("docker", "compose", "version")
    return (
        bool(shutil.which("docker")) and not subprocess.run(words, capture_output=True).returncode
    )


def readable(folder: Path) -> Path:
    """Return compose.yaml; for docker-compose 1, which refuses its name, a copy without it.

    The copy needs the option `--project-directory` with `DOCKER`.
    """
    path = DOCKER / "compose.yaml"
    if is_second_generation():
        return path
    lines = path.read_text().splitlines(keepends=True)
    copy = folder / "compose.yaml"
    copy.write_text("".join(line for line in lines if not line.startswith("name:")))
    return copy
