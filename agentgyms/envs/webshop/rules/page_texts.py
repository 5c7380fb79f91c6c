"""Renders a view as text, in the two observation modes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from agentgyms.envs.webshop.rules.view import Button, Card, Element, OptionGroup, Text, View

SEPARATOR: Final = " [SEP] "

_BLANKS: Final = " \t\n\f\r"


def text(view: View) -> str:
    """Return the page in mode `text`: its texts, separated by ` [SEP] `."""
    parts = [part.strip() for element in view.elements for part in _parts(element)]
    return SEPARATOR.join(parts + _notice(view))


def text_rich(view: View) -> str:
    """Return the page in mode `text_rich`, a line a text; marked values are repeated on top."""
    clicked: list[str] = []
    lines: list[str] = []
    for element in view.elements:
        lines.extend(_lines(element, clicked))
    top = [f"You have clicked {value}." for value in reversed(clicked)]
    return "\n".join([*top, *lines, *_notice(view), ""])


def _notice(view: View) -> list[str]:
    return [f"Nothing happens: {view.notice}."] if view.notice else []


def _parts(element: Element) -> Iterator[str]:
    """Yield the texts of an element, with the blanks that they have on the page."""
    match element:
        case Text(words, _):
            yield from _visible(words)
        case Button(label):
            yield label
        case Card(asin, title, price, _, _):
            yield asin
            yield from _visible(title)
            yield price
        case OptionGroup(name, choices, _):
            yield from _visible(name)
            for choice in choices:
                yield from _visible(choice.value)


def _lines(element: Element, clicked: list[str]) -> Iterator[str]:
    match element:
        case Text(_, "chosen"):
            return  # the marks on the values show it
        case Button(label):
            yield _button(label)
        case Card(asin, title, price, _, visited):
            yield "\n" + _button(asin, visited)
            yield from _visible(title)
            yield price
        case OptionGroup(name, choices, _):
            yield from _visible(name)
            for choice in choices:
                for value in _visible(choice.value):
                    yield "  " + _button(value, choice.marked)
                    if choice.marked:
                        clicked.append(value)
        case _:
            yield from _parts(element)


def _button(label: str, clicked: bool = False) -> str:
    kind = "clicked button" if clicked else "button"
    return f"[{kind}] {label} [{kind}_]"


def _visible(words: str) -> Iterator[str]:
    """Yield the words; as in the original, blanks alone show one blank, with a newline nothing."""
    if words.strip(_BLANKS):
        yield words
    elif words and "\n" not in words:
        yield " "
