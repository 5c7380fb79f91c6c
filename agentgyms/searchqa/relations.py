"""What the closed world is made of: kinds of things and their relations, read from their table."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

TABLE = "closed_world.toml"


@dataclass(frozen=True, slots=True)
class Relation:
    """What links a thing to one value.

    Attributes:
        name: Its name within the kind.
        value: The kind of its values; "" for a date, a number or a name without a paragraph.
        mutual: Whether it holds in both directions.
        facts: Sentences of the thing's paragraph.
        questions: Questions for the value.
        phrases: Ways to speak of the value without naming it, for longer questions.
    """

    name: str
    value: str
    mutual: bool
    facts: tuple[str, ...]
    questions: tuple[str, ...]
    phrases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of thing.

    Attributes:
        name: Its name.
        count: How many things of the kind there are.
        introductions: First sentences of a paragraph.
        traits: What sets them apart and nobody asks for.
        short: Ways to name the thing again.
        asides: Sentences that answer no question.
        reference: How a sentence names the thing.
        relations: What can be asked, by name.
    """

    name: str
    count: int
    introductions: tuple[str, ...]
    traits: tuple[str, ...]
    short: tuple[str, ...]
    asides: tuple[str, ...]
    reference: str
    relations: Mapping[str, Relation]


@cache
def kinds() -> dict[str, Kind]:
    """Return every kind by name, in the order in which they are made."""
    text = resources.files("agentgyms.searchqa").joinpath(TABLE).read_text(encoding="utf-8")
    return {name: _kind(name, fields) for name, fields in tomllib.loads(text).items()}


def _kind(name: str, fields: Mapping[str, Any]) -> Kind:
    wording = {key: tuple(fields[key]) for key in ("introductions", "traits", "short", "asides")}
    relations = [
        Relation(
            row["name"],
            row["value"],
            row.get("mutual", False),
            tuple(row["facts"]),
            tuple(row["questions"]),
            tuple(row.get("phrases", ())),
        )
        for row in fields["relations"]
    ]
    return Kind(
        name=name,
        count=fields["count"],
        reference=fields.get("reference", "{x}"),
        relations={relation.name: relation for relation in relations},
        **wording,
    )
