"""Merges runs of postings into one index, block by block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from agentgyms.envs.webshop.search.bm25 import saturation
from agentgyms.envs.webshop.search.posting_runs import Runs

Array = npt.NDArray[Any]

_BLOCK: Final = 1 << 22  # postings merged at once; about 100 MB


class Column(NamedTuple):
    """One array of an index, as chunks."""

    dtype: npt.DTypeLike
    length: int
    chunks: Iterator[Array]


class Merger:
    """Merges runs, given in document order, `block` postings (or one larger term) at once."""

    def __init__(self, corpus: Runs, block: int = _BLOCK) -> None:
        self._corpus, self._block = corpus, block
        vocabulary: set[bytes] = set()
        for run in corpus.runs:
            vocabulary.update(run.terms())
        self._terms = sorted(vocabulary)
        number = {term: at for at, term in enumerate(self._terms)}
        self._numbers = [
            np.fromiter(map(number.__getitem__, run.terms()), np.int64, len(run.count))
            for run in corpus.runs
        ]
        count = np.zeros(len(self._terms), np.int64)
        for run, numbers in zip(corpus.runs, self._numbers, strict=True):
            count[numbers] += run.count
        self._start = _starts(count)
        pairs = [run.pair for run in corpus.runs]
        self._pair = np.unique(np.concatenate([*pairs, np.empty(0, np.int64)]))

    @property
    def mean_length(self) -> float:
        """The mean number of tokens of a document, over those that have any."""
        return self._corpus.num_tokens / max(self._corpus.num_filled, 1)

    def columns(self) -> Iterator[tuple[str, Column]]:
        """Yield the arrays of the index by name, except `rank`.

        `terms` are all terms in UTF-8, concatenated [bytes]; `term_start` is the offset of each
        [V + 1], and `posting_start` the offset of its postings [V + 1]. A posting is a `document`
        and a `code` [postings], the index of a `pair` [C]; see `Run`. `most` is the largest
        saturation of each term [V].
        """
        size = np.fromiter(map(len, self._terms), np.int64, len(self._terms))
        text = np.frombuffer(b"".join(self._terms), np.uint8)
        yield "terms", _whole(text)
        yield "term_start", _whole(_starts(size))
        yield "posting_start", _whole(self._start)
        yield "pair", _whole(self._pair)
        num_postings = int(self._start[-1])
        yield "document", Column(np.int32, num_postings, self._merged("document"))
        kind = np.uint16 if len(self._pair) <= 1 << 16 else np.uint32
        most: list[Array] = []
        yield "code", Column(kind, num_postings, self._codes(most))
        yield "most", _whole(np.concatenate([*most, np.empty(0, np.float32)]))

    def _codes(self, most: list[Array]) -> Iterator[Array]:
        """Yield the codes, and append the largest saturation of each term to `most`."""
        table = saturation(self._pair >> 8, self._pair & 255, self.mean_length)
        for (low, high), code in zip(self._blocks(), self._merged("code"), strict=True):
            starts = self._start[low:high] - self._start[low]
            most.append(np.maximum.reduceat(table[code], starts))
            yield code

    def _blocks(self) -> Iterator[tuple[int, int]]:
        """Yield the ranges of terms that are merged together: the first, and one past the last."""
        low = 0
        while low < len(self._terms):
            end = self._start[low] + self._block
            # At least one term, even if it has more postings than a block.
            high = max(low + 1, int(np.searchsorted(self._start, end, side="right")) - 1)
            yield low, high
            low = high

    def _merged(self, name: str) -> Iterator[Array]:
        sources = [
            (run, numbers, _starts(run.count), np.searchsorted(self._pair, run.pair))
            for run, numbers in zip(self._corpus.runs, self._numbers, strict=True)
        ]
        for low, high in self._blocks():
            block = np.empty(self._start[high] - self._start[low], np.int64)
            cursor = self._start[low:high] - self._start[low]  # next free place of each term
            for run, numbers, start, recode in sources:
                first, last = np.searchsorted(numbers, (low, high)).tolist()
                postings = run.postings(name, int(start[first]), int(start[last]))
                postings = recode[postings] if name == "code" else postings
                term, count = numbers[first:last] - low, run.count[first:last]
                shift = cursor[term] - (start[first:last] - start[first])
                # Runs come in the order of their documents, so each term's stay sorted.
                block[np.repeat(shift, count) + np.arange(len(postings))] = postings
                cursor[term] += count
            yield block


def _starts(size: Array) -> Array:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(size, dtype=np.int64)])


def _whole(array: Array) -> Column:
    return Column(array.dtype, len(array), iter([array]))
