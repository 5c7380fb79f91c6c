"""The scripted customer of official tasks: it reads its instructions out, piece by piece.

It stands in for the benchmark's user, a model, where there is none: figures with it are not the
benchmark's. Its sentences are fixed, and it changes its mind for no argument.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

NAME: Final = "scripted-instructions-v1"
"""The customer's name in results."""

GOODBYE: Final = "Thank you. Goodbye."

_IDENTITY: Final = re.compile(
    r"\b(name|zip|e-?mail|user id|identity|verify|authenticate)\b", re.IGNORECASE
)
_CLOSING: Final = re.compile(r"\b(anything else|goodbye|being transferred)\b", re.IGNORECASE)
_QUESTION: Final = re.compile(
    r"\b(confirm|proceed|shall i|should i|do you want me to|would you like me to|\(?yes/no\)?)",
    re.IGNORECASE,
)


class Heard(NamedTuple):
    """The customer's answer, the pieces that it has told by then, and whether it is done."""

    words: str
    told: frozenset[str]
    over: bool = False
    nothing_new: bool = False


def begin(pieces: Mapping[str, str]) -> Heard:
    """Return the first words: the reason of the call."""
    return _tell(pieces, frozenset(), ("reason_for_call",))


def hear(
    pieces: Mapping[str, str], told: frozenset[str], words: str, *, transferred: bool
) -> Heard:
    """Return the answer to what the agent says."""
    if transferred:
        return Heard(GOODBYE, told, over=True)
    if _IDENTITY.search(words) and "known_info" in pieces and "known_info" not in told:
        return _tell(pieces, told, ("known_info",))
    is_done = set(pieces) <= told
    if _CLOSING.search(words) and is_done:
        return Heard(GOODBYE, told, over=True)
    if _QUESTION.search(words):
        return Heard("Yes.", told)
    if is_done:
        return Heard("I have told you all I know.", told, nothing_new=True)
    return _tell(pieces, told, tuple(pieces))


def _tell(pieces: Mapping[str, str], told: frozenset[str], wanted: tuple[str, ...]) -> Heard:
    piece = next((one for one in wanted if one in pieces and one not in told), None)
    if piece is None:
        return Heard("Hello.", told)
    return Heard(f'My instructions say: "{pieces[piece]}"', told | {piece})
