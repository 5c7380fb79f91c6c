"""The Dockerfiles of this project, read without a daemon."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "docker"
DOCKERFILES = sorted(DOCKER.glob("*.Dockerfile"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def instructions(path: Path) -> list[tuple[str, str]]:
    """Return (instruction, arguments) of a Dockerfile, continuation lines joined."""
    lines = [line for line in path.read_text().splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    pairs = [line.partition(" ") for line in joined.splitlines() if line.strip()]
    return [(name.upper(), rest.strip()) for name, _, rest in pairs]


def last_stage(path: Path) -> list[tuple[str, str]]:
    found = instructions(path)
    last = max(i for i, (name, _) in enumerate(found) if name == "FROM")
    return found[last:]
