"""Mark-up in scenarios, goals and biographies: which parts of a text a viewer sees.

As in `sotopia` 0.1.4, a text is parsed as XML, else inside `<root>`, else by a lenient parser.
Difference: no text is lost after `]]>`, nor below hundreds of nested tags.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final
from xml.etree.ElementTree import Element, ParseError, SubElement, XMLParser

SHOWN: Final = frozenset({"root", "p", "extra_info", "clarification_hint", "strategy_hint"})
"""Tags whose content agents see; only the environment sees that of other tags."""

_CACHED: Final = 1024
_PLAIN: Final = re.compile("[\t\n\x20-;=-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]+")
"""Characters that XML allows, except `<`."""
_NAME: Final = r"[^\W\d][\w.\-]*(?::[\w.\-]+)?"
_ATTRIBUTE: Final = re.compile(rf"\s+({_NAME})(?:\s*=\s*(\"[^\"]*\"|'[^']*'))?(?=[\s/>])")
_START: Final = re.compile(rf"<({_NAME})")
_CLOSED: Final = re.compile(r"\s*(/?)>")
_BROKEN: Final = re.compile(rf"\s*(?:{_NAME}\s*=?)?\s*")
_END: Final = re.compile(rf"</({_NAME})?\s*(>?)")
_SKIPPED: Final = re.compile(
    r"<!--.*?(?:-->|\Z)|<\?.*?(?:\?>|\Z)|<!\[CDATA\[(?:(.*?)\]\]>|.*)", re.DOTALL
)


def visible_text(text: str, viewer: int | None) -> str:
    """Return the part of a text that a seat sees, or the environment (None), which sees everything.

    Parts of mark-up may have an attribute `viewer`, such as `agent_0`.
    """
    if not text:
        return ""
    root = _read(text)
    if root.tag not in SHOWN:
        return ""
    return "".join(root.itertext()) if viewer is None else _visible_parts(root, f"agent_{viewer}")


def _visible_parts(root: Element, viewer: str) -> str:
    parts: list[str] = []
    left: list[Element | str] = [root]  # no recursion: tags may be nested thousands deep
    while left:
        part = left.pop()
        if isinstance(part, str):
            parts.append(part)
        elif part.tag in SHOWN:
            parts.append(part.text or "")
            for child in reversed(part):
                left.append(child.tail or "")
                if child.get("viewer", viewer) == viewer:
                    left.append(child)
    return "".join(parts)


@lru_cache(maxsize=_CACHED)
def _read(text: str) -> Element:
    for attempt in (text, f"<root>{text}</root>"):
        try:
            parser = XMLParser()  # noqa: S314 - the user's own files; expat limits what entities become
            parser.feed(attempt)
            root = parser.close()
            assert isinstance(root, Element)
            return root
        except (ParseError, ValueError):
            continue
    return _lenient(f"<root>{text}</root>")


def _lenient(text: str) -> Element:
    """Return the tree that libxml2's recovery mode makes of a text that is not XML."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    recovery = _LenientParser(text)
    while recovery.open and recovery.at < len(text):
        recovery.advance()
    return recovery.root


class _LenientParser:
    """Parses a text and continues after errors.

    Any end tag closes the innermost element; text after the outermost one is ignored. A `<` that
    starts no tag, characters that XML forbids and, after the first error, each `&` are dropped.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = len("<root>")
        self.root = Element("root")
        self.open = [self.root]
        self.well_formed = True  # no error yet

    def advance(self) -> None:
        if plain := _PLAIN.match(self.text, self.at):
            self._add(plain[0])
            self.at = plain.end()
        elif skipped := _SKIPPED.match(self.text, self.at):
            self._add(skipped[1] or "")
            self.at = skipped.end()
        elif ended := _END.match(self.text, self.at):
            self.well_formed &= ended[1] == self.open.pop().tag and ended[2] == ">"
            self.at = ended.end()
        elif started := _START.match(self.text, self.at):
            self._start(started)
        else:
            self.well_formed = False
            self.at += 1

    def _add(self, text: str) -> None:
        text = text if self.well_formed else text.replace("&", "")
        if len(children := self.open[-1]):
            children[-1].tail = (children[-1].tail or "") + text
        else:
            self.open[-1].text = (self.open[-1].text or "") + text

    def _start(self, started: re.Match[str]) -> None:
        element = SubElement(self.open[-1], started[1])
        self.at = started.end()
        while attribute := _ATTRIBUTE.match(self.text, self.at):
            name, value = attribute[1], attribute[2]
            self.well_formed &= (
                value is not None and "<" not in value and name not in element.attrib
            )
            if value is not None and name not in element.attrib:
                element.set(name, value[1:-1])
            self.at = attribute.end()
        closed = _CLOSED.match(self.text, self.at) or _BROKEN.match(self.text, self.at)
        assert closed is not None
        self.at = closed.end()
        if closed[0].strip() == ">":
            self.open.append(element)
        self.well_formed &= closed[0].endswith(">")
