"""Prints the changelog of a tag, for its release: `python .github/release_notes.py v0.1.0`."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def notes(tag: str, project: str, changelog: str) -> str:
    """Return the changelog's section of a tag.

    Args:
        tag: `v` and a version.
        project: Text of pyproject.toml.
        changelog: Text of CHANGELOG.md, a section `## VERSION, DATE` for each release.

    Raises:
        SystemExit: The project has another version, or the section is missing or has no date.
    """
    version = tomllib.loads(project)["project"]["version"]
    if tag != f"v{version}":
        sys.exit(f"the tag is {tag}, pyproject.toml has version {version}: expected v{version}")
    found = re.search(
        rf"^## {re.escape(version)}, \d{{4}}-\d\d-\d\d\n(.*?)(?=^## |\Z)",
        changelog,
        re.DOTALL | re.MULTILINE,
    )
    if not found:
        sys.exit(f"CHANGELOG.md has no section `## {version}, YEAR-MONTH-DAY`: write one")
    return found[1].strip() + "\n"


if __name__ == "__main__":
    files = (ROOT / name for name in ("pyproject.toml", "CHANGELOG.md"))
    sys.stdout.write(notes(sys.argv[1], *(file.read_text(encoding="utf-8") for file in files)))
