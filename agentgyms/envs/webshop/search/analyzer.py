"""Text analysis: the index terms of a text are its stemmed words without stop words."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from agentgyms.envs.webshop.search.porter import stem
from agentgyms.envs.webshop.search.tokenizer import tokens

STOP_WORDS: Final = frozenset((
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it",
    "no", "not", "of", "on", "or", "such", "that", "the", "their", "then", "there", "these", "they",
    "this", "to", "was", "will", "with",
))  # fmt: skip
"""Lucene's English stop words, which are not indexed."""

_POSSESSIVES: Final = ("'s", "’s", "＇s", "'S", "’S", "＇S")
_CACHED_TERMS: Final = 1 << 16

# Java maps one character to one lower-case character; Python does not for these two.
_JAVA_LOWER: Final = str.maketrans({"İ": "i", "Σ": "σ"})


def analyze(text: str) -> list[str]:
    """Return the terms of a text, in order, as Anserini's `DefaultEnglishAnalyzer` does."""
    return [term for token in tokens(text) if (term := term_of(token))]


@lru_cache(_CACHED_TERMS)
def term_of(token: str) -> str:
    """Return the term of a token, "" for a stop word."""
    if token.endswith(_POSSESSIVES):
        token = token[:-2]
    if not token.isascii():
        token = token.translate(_JAVA_LOWER)
    token = token.lower()
    return "" if token in STOP_WORDS else stem(token)
