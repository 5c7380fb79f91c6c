"""The scores of documents: what the terms of a query add up to, over their postings."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from agentgyms.webshop.bm25 import Floats, impact

Array = npt.NDArray[Any]

_FEW: Final = 4096  # postings that take less time than to find out whether they are needed
_GROWTH: Final = 3  # between two looks at whether the rest is needed
_PROBED: Final = 4  # times as many documents as are wanted
_SLACK: Final = 1 - 1e-6  # sums are rounded to single precision in the end
_TINY: Final = np.float32(1e-30)


class Term(NamedTuple):
    """A term of a query: its postings, its weight, and the most that it adds to a score."""

    size: int
    start: int
    weight: np.float32
    most: float


class Postings:
    """All postings of an index, one term's after the other's; threads may share them.

    Args:
        document: The document of each posting, ascending within a term. [postings]
        code: Which saturation each posting has. [postings]
        saturation: See `bm25.saturation`. [C]
        num_documents: Of the index.
    """

    def __init__(
        self, document: Array, code: Array, saturation: Floats, *, num_documents: int
    ) -> None:
        self._document, self._code, self._saturation = document, code, saturation
        self._num_documents = num_documents
        self._local = threading.local()

    def score(self, terms: Sequence[Term], k: int) -> tuple[Array, Array]:
        """Return documents, among them the `k` best, and their scores. int32, float64 [M].

        The rarest terms are summed over all their documents. As soon as what the others can add
        lifts no further document among the best, they are looked up for those that are left
        (MaxScore: Turtle and Flood 1995).

        Args:
            terms: The rarest first; not empty.
            k: How many of the best are wanted.

        Raises:
            IndexError: A posting is of a document that is not there.
        """
        total = self._take_totals()
        can_add = np.cumsum([term.most for term in reversed(terms)])[::-1].tolist()
        met: list[Array] = []
        floor, read, next_look = 0.0, 0, max(_FEW, k)
        for at, term in enumerate(terms):
            if met and read + term.size > next_look:
                next_look = _GROWTH * (read + term.size)
                floor = max(floor, self._floor(np.concatenate(met), total, terms[at:], k))
            if floor > can_add[at]:
                break
            document, added = self._postings(term)
            before = total.take(document)
            total[document] = before + added
            met.append(document[before == 0])
            read += term.size
        else:
            at = len(terms)
        everything = document = np.concatenate(met)
        if at < len(terms):
            document = document[total.take(document) >= floor - can_add[at]]
            document.sort()  # ascending ones are found in half the time
        score = total.take(document)
        total[everything] = 0
        self._local.total = total
        return self._look_up(terms[at:], can_add[at:], floor, document, score)

    def _look_up(
        self,
        terms: Sequence[Term],
        can_add: Sequence[float],
        floor: float,
        document: Array,
        score: Array,
    ) -> tuple[Array, Array]:
        """Return the documents that may still reach the floor, and their scores with all terms."""
        for term, more in zip(terms, can_add, strict=True):
            left = np.flatnonzero(score + more >= floor)
            document = document[left]
            score = score[left] + self._added(term, document)
        return document, score

    def _floor(self, document: Array, total: Array, rest: Sequence[Term], k: int) -> float:
        """Return a score that `k` documents reach: those with most so far, with all that is left.

        It is a little lower, so that what rounding makes equal to the last of them stays in.
        """
        if len(document) < k:
            return 0.0
        score = total.take(document)
        if len(score) > _PROBED * k:
            most = np.argpartition(score, -_PROBED * k)[-_PROBED * k :]
            document = np.sort(document[most])
            score = total.take(document)
        for term in rest:
            score += self._added(term, document)
        return float(np.partition(score, -k)[-k]) * _SLACK

    def _added(self, term: Term, document: Array) -> Array:
        """Return what a term adds to the scores of some documents, 0 where it is not."""
        stop = term.start + term.size
        place = np.searchsorted(self._document[term.start : stop], document) + term.start
        place = np.minimum(place, stop - 1)
        has = self._document.take(place) == document
        return np.where(has, self._impact(term).take(self._code.take(place)), 0)

    def _postings(self, term: Term) -> tuple[Array, Array]:
        place = slice(term.start, term.start + term.size)
        return self._document[place], self._impact(term).take(self._code[place])

    def _impact(self, term: Term) -> Array:
        """Return what the term adds, for each pair; never 0, which would be no document."""
        return np.maximum(impact(term.weight, self._saturation), _TINY)

    def _take_totals(self) -> Array:
        """Return this thread's sums, all 0; a search that ends early does not put them back."""
        total: Array | None = self._local.__dict__.pop("total", None)
        return np.zeros(self._num_documents) if total is None else total
