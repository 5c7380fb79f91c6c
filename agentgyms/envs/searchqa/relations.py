"""Kinds of entities of the closed world and their relations, read from a table."""

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
    """A relation of an entity to one value.

    `value` is the kind of its values, "" for a date, a number or a name without a paragraph.
    `facts` are sentence templates for the entity's paragraph; `questions` ask for the value;
    `phrases` describe the value without naming it, for multi-hop questions.
    """

    name: str
    value: str
    mutual: bool
    facts: tuple[str, ...]
    questions: tuple[str, ...]
    phrases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of entity, and the templates of its paragraphs.

    No question asks for the `traits`, and the `asides` answer none. `reference` is the template of
    the entity's name in a question, `short` of short references to it.
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
    """Return every kind by name, in the order of generation."""
    text = resources.files("agentgyms.envs.searchqa").joinpath(TABLE).read_text(encoding="utf-8")
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
