"""Similarity of step texts in [0, 1]: exact and lexical scorers, and a cache around any scorer."""

from __future__ import annotations

import functools
import re
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from rapidfuzz.distance import Indel

from harness.types.arrays import Floats
from harness.types.errors import ConfigError
from harness.types.hyperparameters import integer

Matrix = Callable[[Sequence[str], Sequence[str]], Floats]
"""Any scorer: `(texts_a [m], texts_b [l]) -> similarity [m, l]`, each in [0, 1]."""

WORD: Final = re.compile(r"\w+")


class Scorer(ABC):
    """Scores pairs of texts: given pairs with `pairs`, all pairs of two lists with a call."""

    @abstractmethod
    def pairs(self, texts_a: Sequence[str], texts_b: Sequence[str]) -> Floats:
        """Return the similarity of each text with its counterpart. Shapes [n], [n] -> [n]."""

    def __call__(self, texts_a: Sequence[str], texts_b: Sequence[str]) -> Floats:
        """Return the similarity of all pairs, each distinct one scored once. Shape [m, l]."""
        rows, row = _distinct(texts_a)
        columns, column = _distinct(texts_b)
        left = [a for a in rows for _ in columns]
        scores = self.pairs(left, columns * len(rows)).reshape(len(rows), len(columns))
        return scores[np.ix_(row, column)]


class Exact(Scorer):
    """1 for texts that are equal up to case and white space, 0 for others."""

    def pairs(self, texts_a: Sequence[str], texts_b: Sequence[str]) -> Floats:
        """Return 1 where the texts are equal. Shape [n]."""
        both = zip(texts_a, texts_b, strict=True)
        return np.array([a == b or _plain(a) == _plain(b) for a, b in both], dtype=np.float64)


class Lexical(Scorer):
    """Share of the two texts' words that lie on their longest common subsequence: ROUGE-L's F1.

    2 LCS(a, b) / (|a| + |b|), regardless of case; 1 for two texts without words.
    """

    def pairs(self, texts_a: Sequence[str], texts_b: Sequence[str]) -> Floats:
        """Return the share of common words. Shape [n]."""
        both = zip(texts_a, texts_b, strict=True)
        return np.array(
            [Indel.normalized_similarity(_words(a), _words(b)) for a, b in both], dtype=np.float64
        )


class Cached(Scorer):
    """Caches the scores of the last used pairs, and counts the pairs that were scored."""

    def __init__(self, scorer: Scorer, size: int = 200_000) -> None:
        integer("size", size, 1)
        self.scorer, self.size = scorer, size
        self.num_scored = 0
        self._known: OrderedDict[tuple[str, str], float] = OrderedDict()

    def pairs(self, texts_a: Sequence[str], texts_b: Sequence[str]) -> Floats:
        """Return the similarity of each pair. Shape [n]."""
        requested = list(zip(texts_a, texts_b, strict=True))
        found: dict[tuple[str, str], float] = {}
        for pair in requested:
            if pair in self._known:
                self._known.move_to_end(pair)
                found[pair] = self._known[pair]
        new = [pair for pair in dict.fromkeys(requested) if pair not in found]
        if new:
            self.num_scored += len(new)
            scores = self.scorer.pairs([a for a, _ in new], [b for _, b in new])
            fresh = dict(zip(new, map(float, scores), strict=True))
            found |= fresh
            self._known |= fresh
            while len(self._known) > self.size:
                self._known.popitem(last=False)
        return np.array([found[pair] for pair in requested], dtype=np.float64)


class PairCache:
    """Scores pairs of texts with a scorer, each distinct one once, in one batch a call."""

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer
        self._known: dict[tuple[str, str], float] = {}

    def __call__(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return the similarity of each pair."""
        known = self._known
        new = [pair for pair in dict.fromkeys(pairs) if pair not in known]
        if new:
            scores = self._scorer.pairs([a for a, _ in new], [b for _, b in new])
            known.update(zip(new, checked(scores, (len(new),)).tolist(), strict=True))
        return [known[pair] for pair in pairs]


class ByRow(Scorer):
    """Scores pairs with a callable (texts, texts) -> matrix, one row of texts at a time."""

    def __init__(self, matrix: Matrix) -> None:
        self._matrix = matrix

    def pairs(self, texts_a: Sequence[str], texts_b: Sequence[str]) -> Floats:
        """Return the similarity of each pair: one call for each distinct text of `texts_a`."""
        places: dict[str, list[int]] = {}
        for place, text in enumerate(texts_a):
            places.setdefault(text, []).append(place)
        scores = np.zeros(len(texts_a))
        for text, where in places.items():
            scores[where] = self([text], [texts_b[place] for place in where])[0]
        return scores

    def __call__(self, texts_a: Sequence[str], texts_b: Sequence[str]) -> Floats:
        """Return the callable's matrix, checked. Shape [m, l]."""
        return checked(self._matrix(texts_a, texts_b), (len(texts_a), len(texts_b)))


SCORERS: Final[dict[str, type[Scorer]]] = {"exact": Exact, "lexical": Lexical}


def pure_scorer(scorer: str | Matrix) -> Matrix:
    """Return a scorer by its name, or the given scorer."""
    if isinstance(scorer, str):
        if scorer not in SCORERS:
            raise ConfigError(
                f"scorer {scorer!r} is none of {', '.join(map(repr, SCORERS))}: one with a model "
                "must be opened before, by harness.annotators.semantic.open_scorer"
            )
        return SCORERS[scorer]()
    if not callable(scorer):
        raise ConfigError(f"scorer must be a name or (texts, texts) -> matrix, got {scorer!r}")
    return scorer


def pair_scorer(scorer: str | Matrix) -> Scorer:
    """Return a scorer of pairs by its name, or one that wraps the given callable."""
    judge = pure_scorer(scorer)
    return judge if isinstance(judge, Scorer) else ByRow(judge)


def checked(scores: Any, shape: tuple[int, ...]) -> Floats:
    """Return similarities as float64; refuse another shape, no numbers, or any outside [0, 1]."""
    array = _numbers(scores)
    if array.shape != shape:
        raise ConfigError(f"similarities have shape {array.shape}, expected {shape}")
    if not ((array >= 0) & (array <= 1)).all():
        raise ConfigError("similarities are outside [0, 1]")
    return array


def matrix(scores: Any) -> Floats:
    """Return similarities as a float64 matrix of any shape and range."""
    array = _numbers(scores)
    if array.ndim != 2:
        raise ConfigError(f"similarities must be a matrix, got shape {array.shape}")
    return array


def _numbers(scores: Any) -> Floats:
    try:
        return np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError) as e:
        raise ConfigError(f"similarities must be numbers: {e}") from None


def _distinct(texts: Sequence[str]) -> tuple[list[str], list[int]]:
    """Return the distinct texts and the index of each text among them."""
    index: dict[str, int] = {}
    where = [index.setdefault(text, len(index)) for text in texts]
    return list(index), where


@functools.lru_cache(maxsize=1 << 16)
def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


@functools.lru_cache(maxsize=1 << 16)
def _words(text: str) -> tuple[str, ...]:
    return tuple(WORD.findall(text.casefold()))
