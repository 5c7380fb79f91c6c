"""Lists all settings with types, defaults and descriptions, for the command line and the docs."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from pydantic import BaseModel

from harness.config import allowed_values
from harness.config.evaluation import EvaluationConfig
from harness.config.schema import Config
from harness.config.section import Section

_INDENT: Final = " " * 6
_HEAD: Final = """# Settings

Every setting of `harness train` and `harness eval`, as `--help-config` of either prints it. This
page is generated from the schema in `harness/config` by `python -m harness.config >
docs/settings.md`; a test compares the two.

`--set section.key=value` changes one setting, a TOML file any number. TOML has no None: leave the
key out. A file may extend another one, `extends = "corridor-tiny"` (a built-in recipe) or
`extends = "mine.toml"` (a path relative to the file): tables are merged, other values replaced, and
`--set` is applied last.
"""


class Setting(NamedTuple):
    """A setting as the documentation shows it."""

    key: str  # dotted, such as `run.seed`
    allowed: str  # type, range or choices: `int at least 0`
    default: str  # as in TOML, or None
    description: str


def sections(kind: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, str, list[Setting]]]:
    """Yield the sections of a configuration: name, description and settings."""
    for name, annotation in allowed_values.annotations_of(kind).items():
        section = allowed_values.section_of(annotation)
        if section is not None:
            about, settings = _one_line(section.__doc__), list(_settings(section, prefix + name))
            yield f"{prefix}{name}", about, settings
            yield from sections(section, f"{prefix}{name}.")


def _settings(section: type[BaseModel], name: str) -> Iterator[Setting]:
    annotations = allowed_values.annotations_of(section)
    for key, field in section.model_fields.items():
        if allowed_values.section_of(annotations[key]) is None:
            default = field.get_default(call_default_factory=True)
            yield Setting(
                f"{name}.{key}",
                _allowed(annotations[key]),
                "None" if default is None else json.dumps(default),
                _one_line(field.description),
            )


def _allowed(annotation: Any) -> str:
    known = allowed_values.choices(annotation)
    if known:
        items = ", ".join("None" if one is None else json.dumps(one) for one in known)
        return f"list of {items}" if allowed_values.is_list(annotation) else items
    bounds = allowed_values.bounds(annotation)
    optional = " or None" if allowed_values.is_optional(annotation) else ""
    shown = "" if bounds == "finite" else bounds.removesuffix(" and finite")
    return " ".join(filter(None, (allowed_values.kind(annotation), shown))) + optional


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())


def as_text(kind: type[Section]) -> str:
    """Return all settings of a configuration for a terminal."""
    blocks = []
    for name, about, settings in sections(kind):
        lines = [f"[{name}] {about}"]
        for one in settings:
            lines.append(f"  {one.key} = {one.default}  ({one.allowed})")
            words = textwrap.wrap(one.description, 96 - len(_INDENT))
            lines += [_INDENT + line for line in words]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def as_markdown() -> str:
    """Return the page of the documentation that lists all settings."""
    parts = [_HEAD]
    for title, kind in (("Training", Config), ("Evaluation", EvaluationConfig)):
        parts.append(f"## {title}\n")
        for name, about, settings in sections(kind):
            parts.append(f"### {title}: `{name}`\n\n{about}\n")
            lines = ["| setting | allowed | default | what it is |", "|---|---|---|---|"]
            for one in settings:
                cells = one._replace(key=f"`{one.key}`", default=f"`{one.default}`")
                lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
            parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)
