"""Pages as text: the two observation modes, made from a view."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from agentgyms.webshop.view import Button, Card, Element, OptionGroup, Text, View

SEPARATOR: Final = " [SEP] "

_BLANKS: Final = " \t\n\f\r"


def text(view: View) -> str:
    """Return the page in mode `text`: all that is read on it, parted by ` [SEP] `."""
    parts = [part.strip() for element in view.elements for part in _parts(element)]
    return SEPARATOR.join(parts + _notice(view))


def text_rich(view: View) -> str:
    """Return the page in mode `text_rich`: a line each, with buttons and chosen options marked.

    Each option that is shown as chosen is told at the very top too, the last one first.
    """
    clicked: list[str] = []
    lines: list[str] = []
    for element in view.elements:
        lines.extend(_lines(element, clicked))
    top = [f"You have clicked {value}." for value in reversed(clicked)]
    return "\n".join([*top, *lines, *_notice(view), ""])


def _notice(view: View) -> list[str]:
    return [f"Nothing happens: {view.notice}."] if view.notice else []


def _parts(element: Element) -> Iterator[str]:
    """Iterate over what is read of an element, each with the blanks that it has on the page."""
    match element:
        case Text(words, _):
            yield from _seen(words)
        case Button(label):
            yield label
        case Card(asin, title, price, _, _):
            yield asin
            yield from _seen(title)
            yield price
        case OptionGroup(name, choices, _):
            yield from _seen(name)
            for choice in choices:
                yield from _seen(choice.value)


def _lines(element: Element, clicked: list[str]) -> Iterator[str]:
    match element:
        case Text(_, "chosen"):
            return  # the marks tell it
        case Button(label):
            yield _button(label)
        case Card(asin, title, price, _, visited):
            yield "\n" + _button(asin, visited)
            yield from _seen(title)
            yield price
        case OptionGroup(name, choices, _):
            yield from _seen(name)
            for choice in choices:
                for value in _seen(choice.value):
                    yield "  " + _button(value, choice.marked)
                    if choice.marked:
                        clicked.append(value)
        case _:
            yield from _parts(element)


def _button(label: str, clicked: bool = False) -> str:
    kind = "clicked button" if clicked else "button"
    return f"[{kind}] {label} [{kind}_]"


def _seen(words: str) -> Iterator[str]:
    """Yield the words unless nothing of them is seen.

    As in the original, blanks alone are seen as one, and not at all if there is a newline in them.
    """
    if words.strip(_BLANKS):
        yield words
    elif words and "\n" not in words:
        yield " "
