"""Scores documents for a query, over the postings of its terms (MaxScore)."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from agentgyms.envs.webshop.search.bm25 import Floats, impact

Array = npt.NDArray[Any]

_MIN_CHECKED: Final = 4096  # postings; scoring fewer is faster than a check for the early stop
_CHECK_GROWTH: Final = 3  # factor of postings between two checks for the early stop
_CANDIDATES_PER_RESULT: Final = 4  # documents from which the threshold is computed, per result
_TOLERANCE: Final = 1 - 1e-6  # final scores are rounded to single precision
_TINY: Final = np.float32(1e-30)


class Term(NamedTuple):
    """A term of a query: its postings, its weight, and its largest contribution to a score."""

    size: int
    start: int
    weight: np.float32
    max_impact: float


class Postings:
    """All postings of an index, term after term; thread-safe.

    `document` ascends within a term, and `code` is the index in `saturation` of each posting.
    """

    def __init__(
        self, document: Array, code: Array, saturation: Floats, *, num_documents: int
    ) -> None:
        self._document, self._code, self._saturation = document, code, saturation
        self._num_documents = num_documents
        self._local = threading.local()

    def score(self, terms: Sequence[Term], k: int) -> tuple[Array, Array]:
        """Return documents, among them the `k` best, and their scores. int32, float64 [M].

        The terms are given the rarest first. Those are scored over all their documents. When the
        remaining terms cannot bring a new document among the best, they are scored for the
        candidates alone (MaxScore: Turtle and Flood 1995).
        """
        # This thread's accumulator, all 0; a search that fails does not put it back.
        accumulator: Array | None = self._local.__dict__.pop("accumulator", None)
        if accumulator is None:
            accumulator = np.zeros(self._num_documents)
        # The most that the terms from each position on can add to a score. [terms]
        upper_bounds = np.cumsum([term.max_impact for term in reversed(terms)])[::-1].tolist()
        new_documents: list[Array] = []
        threshold, read, next_check = 0.0, 0, max(_MIN_CHECKED, k)
        for at, term in enumerate(terms):
            if new_documents and read + term.size > next_check:
                next_check = _CHECK_GROWTH * (read + term.size)
                threshold = max(
                    threshold,
                    self._threshold(np.concatenate(new_documents), accumulator, terms[at:], k),
                )
            if threshold > upper_bounds[at]:
                break
            document, contribution = self._postings(term)
            before = accumulator.take(document)
            accumulator[document] = before + contribution
            new_documents.append(document[before == 0])  # no impact is 0, see `_impact`
            read += term.size
        else:
            at = len(terms)
        scored = document = np.concatenate(new_documents)
        if at < len(terms):
            document = document[accumulator.take(document) >= threshold - upper_bounds[at]]
            document.sort()  # searchsorted takes half the time in ascending order
        score = accumulator.take(document)
        accumulator[scored] = 0
        self._local.accumulator = accumulator
        return self._look_up(terms[at:], upper_bounds[at:], threshold, document, score)

    def _look_up(
        self,
        terms: Sequence[Term],
        upper_bounds: Sequence[float],
        threshold: float,
        document: Array,
        score: Array,
    ) -> tuple[Array, Array]:
        """Return the documents that can reach the threshold, and their scores with all terms."""
        for term, upper_bound in zip(terms, upper_bounds, strict=True):
            survivors = np.flatnonzero(score + upper_bound >= threshold)
            document = document[survivors]
            score = score[survivors] + self._contributions(term, document)
        return document, score

    def _threshold(
        self, document: Array, accumulator: Array, remaining: Sequence[Term], k: int
    ) -> float:
        """Return a lower bound of the k-th best score, slightly lowered for rounding."""
        if len(document) < k:
            return 0.0
        score = accumulator.take(document)
        num_candidates = _CANDIDATES_PER_RESULT * k
        if len(score) > num_candidates:
            best = np.argpartition(score, -num_candidates)[-num_candidates:]
            document = np.sort(document[best])
            score = accumulator.take(document)
        for term in remaining:
            score += self._contributions(term, document)
        return float(np.partition(score, -k)[-k]) * _TOLERANCE

    def _contributions(self, term: Term, document: Array) -> Array:
        """Return the contributions of a term to the scores of documents, 0 where it is absent."""
        stop = term.start + term.size
        index = np.searchsorted(self._document[term.start : stop], document) + term.start
        index = np.minimum(index, stop - 1)  # documents after the last posting
        has = self._document.take(index) == document
        return np.where(has, self._impact(term).take(self._code.take(index)), 0)

    def _postings(self, term: Term) -> tuple[Array, Array]:
        index = slice(term.start, term.start + term.size)
        return self._document[index], self._impact(term).take(self._code[index])

    def _impact(self, term: Term) -> Array:
        """Return the contribution of the term for each code; never 0, which marks no document."""
        return np.maximum(impact(term.weight, self._saturation), _TINY)
