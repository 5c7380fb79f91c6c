"""The texts of generated products: titles, descriptions, bullet points and instructions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from agentgyms.chance import Chance
from agentgyms.webshop.generated_table import Kind, Wording

LONGEST_TITLE: Final = 110
_ACRONYMS: Final = frozenset({"usb", "hdmi", "tv", "led", "hd", "spf", "uv", "bpa", "gmo"})
_TITLES: Final = (
    "{brand} {series} {line}, {material}",
    "{brand} {line}, {material} - {series} Edition",
    "{brand} {material} {line} ({series})",
    "{series} {line} by {brand}, {material}",
)


@dataclass(frozen=True, slots=True)
class Design:
    """What a product is before it has texts.

    Attributes:
        kind: Its kind.
        line: Its line of that kind.
        brand: Who makes it.
        series: The word that tells it from the brand's other products.
        material: What it is made of.
        attributes: What it is like.
    """

    kind: Kind
    line: str
    brand: str
    series: str
    material: str
    attributes: tuple[str, ...]


def plural(line: str, mass: bool) -> str:
    """Return the fine category of a line, the form in which instructions name it."""
    if mass or line.endswith("s"):
        return line
    if line.endswith(("sh", "ch", "x")):
        return f"{line}es"
    if line.endswith("y") and line[-2] not in "aeiou":
        return f"{line[:-1]}ies"
    return f"{line}s"


def path_name(query: str) -> str:
    """Return a fine category as the path of categories writes it."""
    return _capitals(query)


def title(design: Design, chance: Chance) -> str:
    """Return a title with one or two attributes, of at most `LONGEST_TITLE` characters."""
    text = chance.pick(_TITLES).format(
        brand=design.brand,
        series=design.series,
        line=_capitals(design.line),
        material=design.material,
    )
    for attribute in design.attributes[: chance.between(1, 2)]:
        longer = f"{text}, {_capitals(attribute)}"
        text = longer if len(longer) <= LONGEST_TITLE else text
    return text


def description(design: Design, attributes: Sequence[str], wording: Wording, chance: Chance) -> str:
    """Return three sentences, of which the second names the attributes that are given."""
    style = wording.styles[design.kind.category]
    opening = chance.pick(style.openings).format(
        brand=design.brand, line=design.line, material=design.material.lower()
    )
    adjectives, extras, uses = _places(attributes, wording)
    parts = [_and(adjectives)] if adjectives else []
    parts += [f"with {_and(extras)}"] if extras else []
    parts += [f"made for {_and(uses)}"] if uses else []
    middle = _sentence(f"{', '.join(parts)}.")
    return f"{_sentence(opening)} {middle} {chance.pick(style.closings)}"


def bullet_points(
    design: Design, attributes: Sequence[str], wording: Wording, chance: Chance
) -> tuple[str, ...]:
    """Return one point for each of the attributes that are given, and a general one."""
    points = [f"{_capitals(name)}: {wording.explanations[name]}." for name in attributes]
    return (*points, f"{chance.pick(wording.styles[design.kind.category].points)}.")


def synthetic_instruction(
    query: str, attributes: Sequence[str], wording: Wording, chance: Chance
) -> str:
    """Return the instruction of synthetic goals, to which the goal's options are added."""
    adjectives, extras, uses = _places(attributes, wording)
    return chance.pick(wording.synthetic).format_map(
        {
            "adjectives": f"{', '.join(adjectives)} " if adjectives else "",
            "query": query,
            "with": f" with {', '.join(extras)}" if extras else "",
            "for": f" for {', '.join(uses)}" if uses else "",
        }
    )


def human_instruction(
    design: Design,
    attributes: Sequence[str],
    options: Iterable[tuple[str, str]],
    wording: Wording,
    chance: Chance,
) -> str:
    """Return an instruction as people write them: in small letters, each worded differently."""
    adjectives, extras, uses = _places(attributes, wording)
    noun = f"{' '.join(adjectives)} {design.line}".strip()
    asked = [chance.pick(wording.asked[name]).format(v=value) for name, value in options]
    return chance.pick(wording.human).format_map(
        {
            "one": noun if design.kind.mass or noun.endswith("s") else f"{_article(noun)} {noun}",
            "with": f" with {' and '.join(extras)}" if extras else "",
            "for": f" for {' or '.join(uses)}" if uses else "",
            "options": "".join(f", {text}" for text in asked),
        }
    )


def _places(attributes: Iterable[str], wording: Wording) -> tuple[list[str], list[str], list[str]]:
    found: dict[str, list[str]] = {"adjective": [], "with": [], "for": []}
    for name in attributes:
        found[wording.places[name]].append(name)
    return found["adjective"], found["with"], found["for"]


def _and(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


@cache
def _capitals(words: str) -> str:
    return " ".join(
        word.upper() if word in _ACRONYMS else word.capitalize() for word in words.split(" ")
    )


def _article(noun: str) -> str:
    return "an" if noun[0] in "aeiou" and not noun.startswith(("usb", "uv", "eu")) else "a"
