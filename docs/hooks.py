"""What MkDocs does before it reads pages: README and others of the top folder join them."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File
from pymdownx.slugs import slugify

from harness.config import methods
from harness.credit import registry

ROOT = Path(__file__).parents[1]
TOP = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
"""Files of the top folder, and the pages that they are."""

EXAMPLES = "examples.md"
_LANGUAGES = {".py": "python", ".sbatch": "bash", ".yaml": "yaml"}

_PLACES = {page: name for name, page in TOP.items()}
_LINK = re.compile(r"\[([^\]]*)\]\(([^):#]+)(#[^)]*)?\)")
_METHOD = re.compile(r"^## (\w+)$", re.MULTILINE)


def on_config(config: Any) -> Any:
    """Name the anchors of headings as GitHub does."""
    config.mdx_configs["toc"]["slugify"] = slugify(case="lower")
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages of the top folder, and one of the examples."""
    for name, page in TOP.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / name)))
    files.append(File.generated(config, EXAMPLES, content=_examples()))
    return files


def _examples() -> str:
    """Return a page with all examples."""
    folders = [ROOT / "examples", ROOT / "examples/clients"]
    found = [file for folder in folders for file in sorted(folder.iterdir())]
    parts = [
        f"## {file.name}\n\n```{_LANGUAGES[file.suffix]}\n{file.read_text()}```\n"
        for file in found
        if file.suffix in _LANGUAGES
    ]
    return "\n".join(["# Examples\n\nThe files in `examples/`; tests run them.\n", *parts])


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return a page whose links lead to pages of the site, and whose methods are described."""
    source = page.file.src_uri
    place = _PLACES.get(source, f"docs/{source}")
    text = _LINK.sub(lambda match: _link(match, place, source), markdown)
    return _described(text) if source.startswith("methods/") else text


def _link(match: re.Match[str], place: str, source: str) -> str:
    """Return a link of the site for one between files; of a file that is no page, its words."""
    words, target, anchor = match.groups()
    file = posixpath.normpath(posixpath.join(posixpath.dirname(place), target))
    found = TOP.get(file) or (file.startswith("docs/") and file.removeprefix("docs/"))
    if posixpath.dirname(file) in ("examples", "examples/clients"):
        found, anchor = EXAMPLES, f"#{posixpath.basename(file).replace('.', '')}"
    if not found:
        return words if (ROOT / file).exists() else match[0]
    return f"[{words}]({posixpath.relpath(found, posixpath.dirname(source) or '.')}{anchor or ''})"


def _described(text: str) -> str:
    """Return a page of methods with, below the heading of each, its row and its estimator."""
    shown: set[str] = set()

    def described(match: re.Match[str]) -> str:
        row = methods.get(match[1])
        function = registry.get(row.estimator)
        heading, *cells = [f"| {name} | {value} |\n" for name, value in _cells(row) if value]
        told = f"{match[0]}\n\n{heading}|---|---|\n{''.join(cells)}"
        if row.estimator in shown:
            return told
        shown.add(row.estimator)
        options = "    options: {heading_level: 3, show_root_full_path: false}"
        return f"{told}\n::: {function.__module__}.{function.__name__}\n{options}\n"

    return _METHOD.sub(described, text)


def _cells(row: methods.Method) -> list[tuple[str, str]]:
    """Return what a method is, as `harness methods` tells it."""
    return [
        ("paper", row.reference),
        ("credit", _settings(row.estimator, row.credit)),
        ("reads", ", ".join(f"`{name}`" for name in registry.needs(row.estimator, row.credit))),
        ("loss", _settings(row.loss, row.loss_settings)),
        ("annotators", ", ".join(_settings(name, given) for name, given in row.annotators.items())),
        ("played by", "" if row.actor == "policy" else row.actor),
        ("changes", _settings("", row.run)),
    ]


def _settings(name: str, given: Any) -> str:
    values = [f"`{key} = {value!r}`" for key, value in given.items()]
    return " ".join([f"`{name}`"] * bool(name) + values)
