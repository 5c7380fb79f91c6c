"""Loads the two tables of the generated catalogue: the kinds of products, and the wording."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final

KINDS: Final = "generated_kinds.toml"
WORDING: Final = "generated_wording.toml"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of product, with several product lines, which are the fine categories.

    `path` are the categories above them, the most general first; `mass` lines have no plural.
    `price` is the usual lowest and highest, in dollars.
    """

    category: str
    path: tuple[str, ...]
    lines: tuple[str, ...]
    mass: bool
    materials: tuple[str, ...]
    attributes: tuple[str, ...]
    options: Mapping[str, str]
    price: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Style:
    """The wording of one category's texts; `points` name no attribute."""

    openings: tuple[str, ...]
    closings: tuple[str, ...]
    points: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Wording:
    """All wording of the generated shop.

    `places` has each attribute's form in a sentence: `adjective`, `with` or `for`. `exclusive` has,
    for each attribute, those that a product with it cannot have.
    """

    places: Mapping[str, str]
    explanations: Mapping[str, str]
    exclusive: Mapping[str, frozenset[str]]
    series: tuple[str, ...]
    styles: Mapping[str, Style]
    values: Mapping[str, tuple[str, ...]]
    option_forms: Mapping[str, tuple[str, ...]]
    synthetic: tuple[str, ...]
    human: tuple[str, ...]


@cache
def kinds() -> tuple[Kind, ...]:
    """Return every kind, in the order in which products are made."""
    return tuple(
        _kind(category, shared, fields)
        for category, shared in _table(KINDS).items()
        for fields in shared["kinds"]
    )


@cache
def wording() -> Wording:
    """Return the wording of all texts."""
    table = _table(WORDING)
    groups = {place: table[place] for place in ("adjective", "with", "for")}
    others: dict[str, set[str]] = {}
    for first, second in table["exclusive"]:
        others.setdefault(first, set()).add(second)
        others.setdefault(second, set()).add(first)
    return Wording(
        places={name: place for place, group in groups.items() for name in group},
        explanations={name: text for group in groups.values() for name, text in group.items()},
        exclusive={name: frozenset(names) for name, names in others.items()},
        series=tuple(table["series"]),
        styles={name: _style(fields) for name, fields in table["category"].items()},
        values={name: tuple(listed) for name, listed in table["values"].items()},
        option_forms={name: tuple(forms) for name, forms in table["asked"].items()},
        synthetic=tuple(table["instruction"]["synthetic"]),
        human=tuple(table["instruction"]["human"]),
    )


def _table(name: str) -> dict[str, Any]:
    text = (
        resources.files("agentgyms.envs.webshop.catalogue")
        .joinpath(name)
        .read_text(encoding="utf-8")
    )
    return tomllib.loads(text)


def _kind(category: str, shared: Mapping[str, Any], fields: Mapping[str, Any]) -> Kind:
    low, high = fields["price"]
    return Kind(
        category=category,
        path=(*shared["path"], *fields["path"]),
        lines=tuple(fields["lines"]),
        mass=fields.get("mass", False),
        materials=tuple(fields["materials"]),
        attributes=(*shared["attributes"], *fields["attributes"]),
        options=fields["options"],
        price=(low, high),
    )


def _style(fields: Mapping[str, list[str]]) -> Style:
    return Style(*(tuple(fields[key]) for key in ("openings", "closings", "points")))
