"""Answers of models: their thoughts, their elements, and the result of parsing."""

from __future__ import annotations

import re
from typing import NamedTuple

THOUGHT = re.compile(r"<think>.*?(?:</think>|$)", re.DOTALL | re.IGNORECASE)
_UNOPENED_THOUGHT = re.compile(r"^.*</think>", re.DOTALL | re.IGNORECASE)


class Parsed(NamedTuple):
    """The result of parsing a model's text."""

    action: str  # the action for the environment; "" if there is none
    # The answer has the required format. Otherwise credit counts the turn as invalid, whatever the
    # environment's feedback.
    valid: bool = True


def element_content(name: str, text: str) -> str | None:
    """Return the content of the first closed element of a name, in any case; None without one.

    A single regular expression would search for the end after every opening tag: this takes minutes
    for an answer that repeats `<action>`.
    """
    opening = re.search(f"<{name}>", text, re.IGNORECASE)
    if opening is None:
        return None
    closing = re.compile(f"</{name}>", re.IGNORECASE).search(text, opening.end())
    return text[opening.end() : closing.start()] if closing else None


def outside_thoughts(text: str) -> str:
    """Return a text without its thoughts.

    A thought is a `<think>` element, all text after an unclosed `<think>`, and all text before an
    unopened `</think>`: some chat templates open the first thought in the prompt.
    """
    return _UNOPENED_THOUGHT.sub("", THOUGHT.sub("", text))


def mask_thoughts(text: str) -> str:
    """Return a text of the same length with another character in place of all of its thoughts."""
    masked = THOUGHT.sub(lambda found: "\0" * len(found[0]), text)
    return _UNOPENED_THOUGHT.sub(lambda found: "\0" * len(found[0]), masked)


def has_thoughts(text: str) -> bool:
    """Return whether a text has the tag of a thought."""
    return "<think>" in text or "</think>" in text


def after_thoughts(text: str) -> str:
    """Return the text after the last thought, as chat templates keep it of earlier answers.

    An unclosed thought has nothing after it: the text before it is returned.
    """
    rest = text.rpartition("</think>")[2]
    return rest.partition("<think>")[0].lstrip("\n")


def after_leading_thought(text: str) -> str:
    """Return a text without the `<think>` element that it begins with; "" if that is not closed."""
    stripped = text.strip()
    if not stripped.startswith("<think>"):
        return stripped
    return stripped.partition("</think>")[2].strip()
