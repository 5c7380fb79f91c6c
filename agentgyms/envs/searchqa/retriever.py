"""The interface of retrievers, and BM25 over a corpus in memory."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from agentgyms.core.errors import DataCorrupt
from agentgyms.envs.searchqa.corpus import Document

MOST_DOCUMENTS: Final = 100
"""Maximum number of documents of a search."""

PATIENCE_S: Final = 60.0
"""Default seconds to retry while a retriever does not answer."""

_NO_BLANKS: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff66-\uff9f\U00020000-\U000323af"
)
"""Characters of scripts that put no blanks between words: Chinese, Japanese, Thai, Khmer, ..."""

_WORD: Final = re.compile(rf"([{_NO_BLANKS}]+)|[^\W{_NO_BLANKS}]+")
_CACHED_QUERIES: Final = 8192
_DECIMALS: Final = 4


class Hit(NamedTuple):
    """A document found, with its score; nan if the retriever gives none."""

    document: Document
    score: float


class Retriever(Protocol):
    """Finds documents for a query."""

    def search(self, query: str, top_k: int) -> Sequence[Hit]:
        """Return at most `top_k` documents, best first; equal queries have equal results."""

    def close(self) -> None:
        """Release all resources."""


K1: Final = 0.9
B: Final = 0.4


class BM25:
    """An index of documents in memory, each given as its words. Threads may share it.

    The score of a document is the sum over the query's words of idf tf / (tf + k1 (1 - b + b length
    / mean length)), with idf = ln(1 + (N - n + 0.5) / (n + 0.5)); the index holds each summand.
    """

    def __init__(self, documents: Iterable[Sequence[str]]) -> None:
        self._number: dict[str, int] = {}
        word, length = array("i"), array("i")
        for words in documents:
            word.extend([self._number.setdefault(w, len(self._number)) for w in words])
            length.append(len(words))
        self._num_documents = len(length)
        if not word:
            raise DataCorrupt(f"there is no word to search for in {len(length)} documents")
        lengths = np.frombuffer(length, np.int32)
        # Postings in the order of their words, and for each word in that of the documents.
        place = np.repeat(np.arange(len(length)), lengths)
        place += np.frombuffer(word, np.int32).astype(np.int64) * len(length)
        place, frequency = np.unique(place, return_counts=True)
        term, document = np.divmod(place, len(length))
        # First posting of each word. [V + 1]
        self._start = np.searchsorted(term, np.arange(len(self._number) + 1))
        num_with_term = np.diff(self._start)
        idf = np.log(1 + (len(length) - num_with_term + 0.5) / (num_with_term + 0.5))
        # [documents]
        norm = K1 * (1 - B + B * lengths / lengths.mean())
        saturation = frequency / (norm[document] + frequency)
        self._document = document.astype(np.int32)
        self._score = (idf.astype(np.float32)[term] * saturation).astype(np.float32)

    def scores(self, words: Iterable[str]) -> npt.NDArray[np.float32]:
        """Return the score of each document for a query; a word that occurs twice counts twice."""
        total = np.zeros(self._num_documents, np.float32)
        places = [self._postings(word) for word in words if word in self._number]
        if places:
            document = np.concatenate([self._document[place] for place in places])
            np.add.at(total, document, np.concatenate([self._score[place] for place in places]))
        return total

    def _postings(self, word: str) -> slice[Any]:
        number = self._number[word]
        return slice(*self._start[number : number + 2].tolist())


class BM25Retriever:
    """BM25 over documents in memory, in the variant of Lucene (k1 = 0.9, b = 0.4, as Pyserini).

    Documents with equal scores are in the order of the corpus; one without a word of the query is
    never returned. Scripts without blanks between words are indexed by pairs of characters. Results
    are cached by query. Threads may share it. 60,000 documents of 100 words
    take about 5 s to index and 3 kB each.
    """

    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = tuple(documents)
        self._index = BM25(_words(document.contents) for document in self._documents)
        self._cached_search = lru_cache(_CACHED_QUERIES)(self._rank)

    def __len__(self) -> int:
        return len(self._documents)

    def search(self, query: str, top_k: int) -> Sequence[Hit]:
        """Return at most `top_k` documents; see `Retriever`."""
        return self._cached_search(tuple(_words(query)), top_k)

    def close(self) -> None:
        """Do nothing: environments share the index."""

    def _rank(self, words: tuple[str, ...], top_k: int) -> tuple[Hit, ...]:
        # Rounded, so that the order does not depend on the last bits of a machine's arithmetic.
        scores = np.round(self._index.scores(words).astype(np.float64), _DECIMALS)
        found = np.flatnonzero(scores > 0)
        if len(found) > top_k:
            threshold = np.partition(scores[found], -top_k)[-top_k]
            found = found[scores[found] >= threshold]
        best = found[np.argsort(-scores[found], kind="stable")][:top_k]
        return tuple(Hit(self._documents[i], float(scores[i])) for i in best.tolist())


def _words(text: str) -> list[str]:
    """Return a text's words; where a script has no blanks, all pairs of neighbours."""
    found: list[str] = []
    for match in _WORD.finditer(text.lower()):
        run = match[1]
        if run is None or len(run) < 2:
            found.append(match[0])
        else:
            found += [run[i : i + 2] for i in range(len(run) - 1)]
    return found
