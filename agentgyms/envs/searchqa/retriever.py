"""The interface of retrievers, and BM25 over a corpus in memory."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple, Protocol

import numpy as np

from agentgyms.envs.searchqa.bm25 import BM25
from agentgyms.envs.searchqa.corpus import Document

MOST_DOCUMENTS: Final = 100
"""Maximum number of documents of a search."""

PATIENCE_S: Final = 60.0
"""Default seconds to retry while a retriever does not answer."""

_WORD: Final = re.compile(r"\w+")
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


class BM25Retriever:
    """BM25 over documents in memory, in the variant of Lucene (k1 = 0.9, b = 0.4, as Pyserini).

    Documents with equal scores are in the order of the corpus; one without a word of the query is
    never returned. Results are cached by query. Threads may share it. 60,000 documents of 100 words
    take about 5 s to index and 3 kB each.
    """

    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = tuple(documents)
        self._index = BM25(_words(document.contents) for document in self._documents)
        self._cached_search = lru_cache(_CACHED_QUERIES)(self._rank)

    def __len__(self) -> int:
        """Return the number of documents."""
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
    return _WORD.findall(text.lower())
