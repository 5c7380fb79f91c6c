"""Exact match, F1 and more, as SQuAD normalises (Rajpurkar et al. 2016, arXiv:1606.05250)."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

_NO_PUNCTUATION: Final = str.maketrans("", "", string.punctuation)
_VERDICTS: Final = frozenset({"yes", "no", "noanswer"})
_ARTICLE: Final = re.compile(r"\b(a|an|the)\b")


@lru_cache(maxsize=8192)  # golden answers and documents repeat at every turn
def normalize(text: str) -> str:
    """Return a text in lower case, without ASCII punctuation, articles and extra spaces.

    Punctuation is removed first, so `A-ha` becomes `aha`; non-ASCII quotes and dashes stay.
    """
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def exact_match(answer: str, golden: Iterable[str]) -> bool:
    """Return whether an answer equals one of the golden ones, both normalised.

    Texts that normalise to "" are compared unnormalised, ignoring spaces and case, and an empty
    golden answer equals no answer. In the usual script, any two texts of articles alone are equal.
    """
    return canonical(answer) in {canonical(gold) for gold in golden} - {""}


def substring_match(answer: str, golden: Iterable[str]) -> bool:
    """Return whether a golden answer is in the answer, both normalised; "" is in no answer."""
    normalized = normalize(answer)
    return any(gold and gold in normalized for gold in map(normalize, golden))


def f1(answer: str, golden: Iterable[str]) -> float:
    """Return the highest token F1 over the golden answers, in [0, 1]; 1 if `exact_match`.

    Tokens are the words after normalisation, counted with repetitions. As in FlashRAG, an answer or
    a golden answer that normalises to `yes`, `no` or `noanswer` matches nothing but itself.
    """
    normalized = canonical(answer)
    return max((_f1(normalized, canonical(gold)) for gold in golden), default=0.0)


def mentions(text: str, golden: Iterable[str]) -> bool:
    """Return whether a golden answer occurs in a text as whole words, both normalised."""
    normalized = f" {normalize(text)} "
    return any(gold and f" {gold} " in normalized for gold in map(normalize, golden))


def canonical(text: str) -> str:
    """Return a text normalised or, if that is empty, in lower case without extra spaces."""
    return normalize(text) or " ".join(text.lower().split())


def _f1(normalized: str, gold: str) -> float:
    if normalized != gold and _VERDICTS & {normalized, gold}:
        return 0.0
    words, gold_words = normalized.split(), gold.split()
    common = (Counter(words) & Counter(gold_words)).total()
    return 2 * common / (len(words) + len(gold_words)) if common else 0.0
