"""Sorted runs of postings, each of as many documents as fit into limited memory."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from agentgyms.envs.webshop.search.analyzer import term_of
from agentgyms.envs.webshop.search.bm25 import length_byte
from agentgyms.envs.webshop.search.tokenizer import tokens

Array = npt.NDArray[Any]

RUN_TOKENS: Final = 1 << 23
"""Tokens of a run; each takes about 60 bytes of memory."""

_MAX_RUN_WORDS: Final = 1_000_000  # distinct ones, of about 250 bytes each


class Run:
    """The postings of some documents, ordered by term and then by document.

    `terms` [V] are sorted by code points, and `count` [V] documents have each. `pair` [C] are the
    distinct pairs of a frequency (`>> 8`) and a length's code (`& 255`). `document` and `code`
    [postings] are the document of each posting, and its index in `pair`. `path` None keeps them in
    memory.
    """

    def __init__(
        self,
        terms: Sequence[str],
        *,
        count: Array,
        pair: Array,
        document: Array,
        code: Array,
        path: Path | None,
    ) -> None:
        self._terms = "\n".join(terms).encode()
        self.count, self.pair = count, pair
        self._path = path
        self._types = {"document": document.dtype, "code": code.dtype}
        self._postings = {"document": document, "code": code}
        if path is not None:
            for name, postings in self._postings.items():
                postings.tofile(path.with_suffix(f".{name}"))
            self._postings = {}

    def terms(self) -> list[bytes]:
        """Return the terms in order, in UTF-8."""
        return self._terms.split(b"\n") if self._terms else []

    def postings(self, name: str, low: int, high: int) -> Array:
        """Return the column `document` or `code` of some postings."""
        if self._path is None:
            return self._postings[name][low:high]
        kind = self._types[name]
        path = self._path.with_suffix(f".{name}")
        return np.fromfile(path, kind, high - low, offset=low * kind.itemsize)


class Runs(NamedTuple):
    """All runs of a corpus, and the corpus statistics of BM25."""

    runs: list[Run]
    num_documents: int
    num_filled: int
    num_tokens: int


class RunWriter:
    """Collects documents in runs of `run_tokens` tokens; without a folder, in memory."""

    def __init__(self, folder: Path | None, run_tokens: int = RUN_TOKENS) -> None:
        self._folder, self._run_tokens = folder, run_tokens
        self._runs: list[Run] = []
        self._numbers = _TermNumbers()
        self._token, self._length = array("i"), array("i")
        self.num_documents = self._num_filled = self._num_tokens = 0

    def add(self, text: str) -> None:
        """Add the next document."""
        before = len(self._token)
        self._token.extend(map(self._numbers.__getitem__, tokens(text)))
        self._length.append(len(self._token) - before)
        self.num_documents += 1
        if len(self._token) >= self._run_tokens or len(self._numbers) >= _MAX_RUN_WORDS:
            self._close_run()

    def finish(self) -> Runs:
        """Return all runs."""
        if self._length:
            self._close_run()
        return Runs(self._runs, self.num_documents, self._num_filled, self._num_tokens)

    def _close_run(self) -> None:
        num_documents = len(self._length)
        token = np.frombuffer(self._token, np.int32)
        document = np.repeat(
            np.arange(num_documents, dtype=np.int32), np.frombuffer(self._length, np.int32)
        )
        counts = token >= 0  # without stop words
        token, document = token[counts], document[counts]
        length = np.bincount(document, minlength=num_documents)  # in terms [documents]
        self._num_filled += int(np.count_nonzero(length))
        self._num_tokens += len(token)
        self._runs.append(self._sorted(token, document, length))
        self._token, self._length, self._numbers = array("i"), array("i"), _TermNumbers()

    def _sorted(self, token: Array, document: Array, length: Array) -> Run:
        terms = list(self._numbers.terms)
        order = sorted(range(len(terms)), key=terms.__getitem__)
        rank = np.empty(len(terms), np.int64)
        rank[order] = np.arange(len(terms))
        # One number for (term, document), so that one sort orders postings by both.
        place = rank[token] * max(len(length), 1) + document
        place.sort()
        first = np.flatnonzero(np.diff(place, prepend=-1))  # start of each posting [postings]
        frequency = np.diff(first, append=len(place))
        term, document = np.divmod(place[first], max(len(length), 1))
        pair, code = _pairs(frequency, length_byte(length)[document])
        path = self._folder and self._folder / f"{len(self._runs):04}"
        return Run(
            [terms[number] for number in order],
            count=np.bincount(term, minlength=len(terms)),
            pair=pair,
            document=(document + (self.num_documents - len(length))).astype(np.int32),
            code=code,
            path=path,
        )


class _TermNumbers(dict[str, int]):
    """Maps tokens to the number of their term in this run, -1 for stop words."""

    def __init__(self) -> None:
        super().__init__()
        self.terms: dict[str, int] = {}

    def __missing__(self, token: str) -> int:
        term = term_of(token)
        number = self.terms.setdefault(term, len(self.terms)) if term else -1
        self[token] = number
        return number


def _pairs(frequency: Array, byte: Array) -> tuple[Array, Array]:
    """Return the distinct pairs, ascending, and the index of each posting's; in linear time."""
    values, level = _distinct(frequency)
    codes, code = _distinct(level << 8 | byte)
    kind = np.uint16 if len(codes) <= 1 << 16 else np.uint32
    return values[codes >> 8] << 8 | codes & 255, code.astype(kind)


def _distinct(values: Array) -> tuple[Array, Array]:
    """Return the distinct values, ascending, and the index of each entry's value."""
    present = np.bincount(values, minlength=1) > 0
    return np.flatnonzero(present), (np.cumsum(present) - 1)[values]
