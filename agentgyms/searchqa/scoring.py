"""How an answer is compared with the golden ones: exact match, F1 and substring match.

The normalisation is that of SQuAD's evaluation script (Rajpurkar et al. 2016, arXiv:1606.05250),
which Search-R1, verl-agent and FlashRAG use as well.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

_NO_PUNCTUATION: Final = str.maketrans("", "", string.punctuation)
_ARTICLE: Final = re.compile(r"\b(a|an|the)\b")


@lru_cache(maxsize=8192)  # golden answers and documents come again at every turn
def normalize(text: str) -> str:
    """Return a text in lower case, without ASCII punctuation, articles and surplus blanks.

    Punctuation goes first, so `A-ha` becomes `aha`; quotes and dashes beyond ASCII stay.
    """
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def exact_match(answer: str, golden: Iterable[str]) -> bool:
    """Return whether an answer equals one of the golden ones, both normalised.

    Departs from the usual script, where any answer of articles alone equals any such golden answer
    and an empty one: texts that normalise to nothing are compared as they are, blanks and case
    aside, and an empty golden answer equals none.
    """
    return canonical(answer) in {canonical(gold) for gold in golden} - {""}


def substring_match(answer: str, golden: Iterable[str]) -> bool:
    """Return whether a golden answer occurs in the answer, both normalised.

    A golden answer that normalises to nothing occurs in none.
    """
    said = normalize(answer)
    return any(gold and gold in said for gold in map(normalize, golden))


def f1(answer: str, golden: Iterable[str]) -> float:
    """Return the harmonic mean of the words' precision and recall, for the nearest golden answer.

    Words are counted as often as they occur, after normalisation. Range [0, 1].
    """
    return max(
        (_f1(normalize(answer).split(), normalize(gold).split()) for gold in golden), default=0.0
    )


def mentions(text: str, golden: Iterable[str]) -> bool:
    """Return whether a golden answer stands in a longer text as whole words, both normalised."""
    said = f" {normalize(text)} "
    return any(gold and f" {gold} " in said for gold in map(normalize, golden))


def canonical(text: str) -> str:
    """Return the form in which two queries or two answers are the same.

    It is the normalised one; where that is empty, the text in lower case without surplus blanks.
    """
    return normalize(text) or " ".join(text.lower().split())


def _f1(said: list[str], gold: list[str]) -> float:
    common = (Counter(said) & Counter(gold)).total()
    return 2 * common / (len(said) + len(gold)) if common else 0.0
