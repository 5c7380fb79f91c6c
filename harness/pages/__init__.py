"""HTML files that need nothing else: a template filled, and the look and drawing they share.

`common.css`, `colour.js` and `drawing.js` belong to every page; each page adds its own.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

SHARED: Final = Path(__file__).parent
_DRAWING: Final = ("colour.js", "drawing.js")


def build(folder: Path, scripts: Sequence[str], parts: dict[str, str]) -> str:
    """Return the page of a folder, its style and scripts inside.

    Only these scripts run in it: the page's Content-Security-Policy names their hash.

    Args:
        folder: Holds `page.html`, `page.css` and the scripts.
        scripts: Their names, in order; the shared ones come before them.
        parts: What else `page.html` asks for, by name: HTML that is put in as it is.

    Raises:
        KeyError: `page.html` asks for a part that is not there.
    """
    paths = [SHARED / name for name in _DRAWING] + [folder / name for name in scripts]
    script = '"use strict";\n' + "\n".join(path.read_text(encoding="utf-8") for path in paths)
    digest = hashlib.sha256(f"\n{script}\n".encode()).digest()
    styles = [SHARED / "common.css", folder / "page.css"]
    parts = {
        **parts,
        "style": "\n".join(path.read_text(encoding="utf-8") for path in styles),
        "script": script,
        "script_hash": f"sha256-{base64.b64encode(digest).decode()}",
    }
    pieces = (folder / "page.html").read_text(encoding="utf-8").split("{{")
    filled = [pieces[0]]
    for piece in pieces[1:]:
        name, _, rest = piece.partition("}}")
        filled += [parts[name], rest]
    return "".join(filled)


def safe_text(text: str) -> str:
    """Return a text as HTML that shows it; a lone surrogate becomes a question mark."""
    return html.escape(text).encode("utf-8", "replace").decode("utf-8")


def safe_json(values: Any) -> str:
    """Return JSON that holds no character an HTML parser could take for its own.

    Raises:
        ValueError: A number is nan or infinite.
    """
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.encode("utf-8", "replace").decode("utf-8")
