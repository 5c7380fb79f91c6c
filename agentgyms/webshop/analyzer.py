"""What a text is found by: its words without their endings."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from agentgyms.webshop.porter import stem
from agentgyms.webshop.tokenizer import tokens

STOP_WORDS: Final = frozenset((
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it",
    "no", "not", "of", "on", "or", "such", "that", "the", "their", "then", "there", "these", "they",
    "this", "to", "was", "will", "with",
))  # fmt: skip
"""Words that are not searched for: Lucene's English ones."""

_POSSESSIVES: Final = ("'s", "’s", "＇s", "'S", "’S", "＇S")
_REMEMBERED: Final = 1 << 16

# Java lowers one character to one; Python knows two exceptions.
_EXCEPTIONS: Final = str.maketrans({"İ": "i", "Σ": "σ"})


def analyze(text: str) -> list[str]:
    """Return the terms of a text in its order, those of a document and of a query alike.

    As Anserini's `DefaultEnglishAnalyzer`: tokens lose their `'s` and are set in lower case, stop
    words are dropped, and the rest are stemmed.
    """
    return [term for token in tokens(text) if (term := term_of(token))]


@lru_cache(_REMEMBERED)
def term_of(token: str) -> str:
    """Return the term of a token, "" for a stop word."""
    if token.endswith(_POSSESSIVES):
        token = token[:-2]
    if not token.isascii():
        token = token.translate(_EXCEPTIONS)
    token = token.lower()
    return "" if token in STOP_WORDS else stem(token)
