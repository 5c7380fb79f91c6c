"""The code blocks of README and documentation, and what is known about those that cannot run."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")),
]
KNOWN = tomllib.loads(Path(__file__).with_name("exceptions.toml").read_text(encoding="utf-8"))
"""`python`: blocks that end in an error here; `elsewhere`: pages whose code another test runs;
`bash`: commands that do not run here. Each with its reason; tests hold them complete."""

_FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A block of code: its page, the number of its first line there, its language, its text."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self):
        return f"{self.page}:{self.line}"


def blocks(page):
    """Return the blocks of a page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [
        Block(page, text.count("\n", 0, found.start()) + 2, found[1], found[2])
        for found in _FENCE.finditer(text)
    ]


ALL = [block for page in PAGES for block in blocks(page)]


def of(language):
    """Return all blocks of a language."""
    return [block for block in ALL if block.language == language]


def elsewhere(page):
    """Return whether another test runs the code of a page."""
    return any(row["page"] == page for row in KNOWN["elsewhere"])
