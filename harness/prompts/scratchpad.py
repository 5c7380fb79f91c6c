"""A scratchpad: notes that a model writes in `<memory>` elements and reads in its next prompts.

The last closed element outside thoughts counts; an empty one deletes the notes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from harness.prompts.answers import mask_thoughts

_TAG: Final = re.compile(r"<(/?)memory>", re.IGNORECASE)


def notes_in(text: str) -> str | None:
    """Return the notes of an answer, without blanks around them; None if it has no element."""
    found = None
    for start, end in _elements(text):
        found = _TAG.sub("", text[start:end]).strip()
    return found


def without_notes(text: str) -> str:
    """Return an answer without its `<memory>` elements, for its parser."""
    kept, last = [], 0
    for start, end in _elements(text):
        kept.append(text[last:start])
        last = end
    return "".join([*kept, text[last:]])


def _elements(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each closed element outside thoughts."""
    start = None
    for tag in _TAG.finditer(mask_thoughts(text)):
        if not tag[1]:
            start = tag.start() if start is None else start
        elif start is not None:
            yield start, tag.end()
            start = None
