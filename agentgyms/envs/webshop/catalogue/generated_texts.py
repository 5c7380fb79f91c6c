"""The texts of generated products: titles, descriptions, bullet points and instructions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from agentgyms.core.randomness import Chance
from agentgyms.envs.webshop.catalogue.generated_table import Kind, Wording

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
    """The design of a product; its series distinguishes it from the brand's others."""

    kind: Kind
    line: str
    brand: str
    series: str
    material: str
    attributes: tuple[str, ...]


def plural(line: str, mass: bool) -> str:
    """Return the fine category of a line: its plural, as in instructions."""
    if mass or line.endswith("s"):
        return line
    if line.endswith(("sh", "ch", "x")):
        return f"{line}es"
    if line.endswith("y") and line[-2] not in "aeiou":
        return f"{line[:-1]}ies"
    return f"{line}s"


def path_name(query: str) -> str:
    """Return a fine category in the form of the path of categories."""
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
    """Return three sentences; the second one names `attributes`."""
    style = wording.styles[design.kind.category]
    opening = chance.pick(style.openings).format(
        brand=design.brand, line=design.line, material=design.material.lower()
    )
    adjectives, extras, uses = _by_place(attributes, wording)
    parts = [_join_with_and(adjectives)] if adjectives else []
    parts += [f"with {_join_with_and(extras)}"] if extras else []
    parts += [f"made for {_join_with_and(uses)}"] if uses else []
    middle = _sentence(f"{', '.join(parts)}.")
    return f"{_sentence(opening)} {middle} {chance.pick(style.closings)}"


def bullet_points(
    design: Design, attributes: Sequence[str], wording: Wording, chance: Chance
) -> tuple[str, ...]:
    """Return one point for each of `attributes`, and a general one."""
    points = [f"{_capitals(name)}: {wording.explanations[name]}." for name in attributes]
    return (*points, f"{chance.pick(wording.styles[design.kind.category].points)}.")


def synthetic_instruction(
    query: str, attributes: Sequence[str], wording: Wording, chance: Chance
) -> str:
    """Return the instruction of synthetic goals, without the goal's options."""
    adjectives, extras, uses = _by_place(attributes, wording)
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
    """Return a human-style instruction: in lower case, with varied wording."""
    adjectives, extras, uses = _by_place(attributes, wording)
    noun = f"{' '.join(adjectives)} {design.line}".strip()
    option_texts = [
        chance.pick(wording.option_forms[name]).format(v=value) for name, value in options
    ]
    return chance.pick(wording.human).format_map(
        {
            "one": noun if design.kind.mass or noun.endswith("s") else f"{_article(noun)} {noun}",
            "with": f" with {' and '.join(extras)}" if extras else "",
            "for": f" for {' or '.join(uses)}" if uses else "",
            "options": "".join(f", {text}" for text in option_texts),
        }
    )


def _by_place(
    attributes: Iterable[str], wording: Wording
) -> tuple[list[str], list[str], list[str]]:
    found: dict[str, list[str]] = {"adjective": [], "with": [], "for": []}
    for name in attributes:
        found[wording.places[name]].append(name)
    return found["adjective"], found["with"], found["for"]


def _join_with_and(words: Sequence[str]) -> str:
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
