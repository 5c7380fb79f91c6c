"""HTML pages in one file each: jinja2 templates with the style, the data and the script inside.

The templates, styles and scripts in this folder belong to every page. A page's own folder adds
`page.html`, which extends `base.html`, `page.css` and its own scripts.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import jinja2
from markupsafe import Markup

SHARED: Final = Path(__file__).parent
_SHARED_SCRIPTS: Final = ("colour.js", "drawing.js", "theme.js")


@dataclass(frozen=True, slots=True)
class Page:
    """A kind of page: its template, style and scripts."""

    folder: Path  # holds `page.html`, which extends `base.html`, `page.css` and the scripts
    scripts: tuple[str, ...]  # in the order in which they run, after the shared scripts

    def render(self, **fields: Any) -> str:
        """Return a page as one HTML text; a lone surrogate becomes a question mark.

        The page's Content-Security-Policy names the hash of its script, so no other script runs.
        `fields` are the template's values: `title`, `data`, which is written as JSON, and its own.
        Raises `jinja2.UndefinedError` if one is missing, `ValueError` if a number in `data` is nan
        or infinite.
        """
        scripts = [SHARED / name for name in _SHARED_SCRIPTS]
        scripts += [self.folder / name for name in self.scripts]
        script = '"use strict";\n' + _joined(scripts)
        digest = hashlib.sha256(f"\n{script}\n".encode()).digest()
        environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader([self.folder, SHARED]),
            undefined=jinja2.StrictUndefined,
            autoescape=True,
            trim_blocks=True,
            keep_trailing_newline=True,
        )
        environment.filters["script_json"] = _script_json
        style = _joined([SHARED / "common.css", self.folder / "page.css"])
        page = environment.get_template("page.html").render(
            fields,
            style=Markup(style),  # noqa: S704 (a file of this package)
            script=Markup(script),  # noqa: S704 (files of this package)
            script_hash=f"sha256-{base64.b64encode(digest).decode()}",
        )
        return page.encode("utf-8", "replace").decode("utf-8")


def _joined(paths: Sequence[Path]) -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in paths)


def _script_json(values: Any) -> Markup:
    """Return finite values as JSON for a `<script>`, without `<`, `>`, `&` and line separators."""
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704 (nothing is left that HTML could read as markup)
