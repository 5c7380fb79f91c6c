"""Writes the install lines of all pages as `PUBLISHED` in agentgyms/core/imports.py asks.

`python .github/install_lines.py`, on the day on which an index has the package.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from agentgyms.core.imports import PUBLISHED  # noqa: E402

PAGES: Final = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("*.py")),
]
"""Files whose lines are a user's; those of CONTRIBUTING.md are always for a checkout."""

LINE: Final = re.compile(
    r"pip install (?:-e )?'?(?:agentgyms|\.)(\[[\w,]+\])?(?: @ [^']*)?'?(?=[\s`)]|$)"
    r"( +# in a checkout$)?",
    re.MULTILINE,
)


def written(text: str, address: str = "", *, published: bool = PUBLISHED) -> str:
    """Return a text whose lines install from an index, else from an address, else a checkout.

    Args:
        text: The page.
        address: The repository and its tag, such as `https://host/owner/name@v1.2.3`.
        published: Whether an index has the package.
    """

    def line(found: re.Match[str]) -> str:
        extras = found[1] or ""
        if published:
            what = f"agentgyms{extras}"
            return f"pip install '{what}'" if extras else f"pip install {what}"
        if address:
            return f"pip install 'agentgyms{extras} @ git+{address}'"
        checkout = f"pip install -e '.{extras}'" if extras else "pip install -e ."
        return checkout + (found[2] or "")

    return LINE.sub(line, text)


if __name__ == "__main__":
    for page in PAGES:
        before = page.read_text(encoding="utf-8")
        if (after := written(before)) != before:
            page.write_text(after, encoding="utf-8")
            print(page.relative_to(ROOT))  # noqa: T201
