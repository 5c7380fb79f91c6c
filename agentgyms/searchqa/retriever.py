"""Search engines: what one is, and BM25 over a corpus in memory."""

from __future__ import annotations

import importlib
import logging
import re
import sys
import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from agentgyms.errors import DataCorrupt
from agentgyms.searchqa.corpus import Document

MOST_DOCUMENTS: Final = 100
"""Longest list of documents that a search may ask for."""

PATIENCE_S: Final = 60.0
"""How long a lost search server is waited for, unless an environment says another time."""

_WORD: Final = re.compile(r"\w+")
_CACHED_QUERIES: Final = 8192
_DECIMALS: Final = 4


class Hit(NamedTuple):
    """A document that was found, with its score; nan where a retriever tells none."""

    document: Document
    score: float


class Retriever(Protocol):
    """Finds documents for a query."""

    def search(self, query: str, top_k: int) -> Sequence[Hit]:
        """Return at most `top_k` documents, the best first; the same ones for the same query."""

    def close(self) -> None:
        """Give back what it holds."""


class BM25Retriever:
    """BM25 over documents in memory, in the variant of Lucene (k1 = 0.9, b = 0.4, as Pyserini).

    Documents of equal score come in the order of the corpus; one without a word of the query is
    never found. A query that was asked before is answered from a cache. Threads may share it.

    Args:
        documents: What it searches; 60,000 of 100 words take about 5 s to index and
            9 kB each.

    Raises:
        DataCorrupt: No document has a word.
    """

    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = tuple(documents)
        self._index: Any = _bm25s().BM25(method="lucene", k1=0.9, b=0.4)
        words = [_words(document.contents) for document in self._documents]
        if not any(words):
            raise DataCorrupt(f"there is no word to search for in {len(words)} documents")
        self._index.index(words, show_progress=False)
        self._find = lru_cache(_CACHED_QUERIES)(self._rank)

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self._documents)

    def search(self, query: str, top_k: int) -> Sequence[Hit]:
        """Return at most `top_k` documents; see `Retriever`."""
        return self._find(tuple(_words(query)), top_k)

    def close(self) -> None:
        """Do nothing: other environments share it."""

    def _rank(self, words: tuple[str, ...], top_k: int) -> tuple[Hit, ...]:
        known = [word for word in words if word in self._index.vocab_dict]
        if not known:
            return ()
        # Rounded, so that the order does not hang on the last bits of a machine's arithmetic.
        scores = np.round(self._index.get_scores(known).astype(np.float64), _DECIMALS)
        found = np.flatnonzero(scores > 0)
        if len(found) > top_k:
            threshold = np.partition(scores[found], -top_k)[-top_k]
            found = found[scores[found] >= threshold]
        best = found[np.argsort(-scores[found], kind="stable")][:top_k]
        return tuple(Hit(self._documents[i], float(scores[i])) for i in best.tolist())


_IMPORTING: Final = threading.Lock()


def _bm25s() -> Any:
    """Return the module bm25s, imported without jax.

    It would import jax where that is installed: seconds, memory of an accelerator, threads that do
    not survive a fork, and an error if jax does not fit the numpy there is; none of its functions
    that need jax is used here.
    """
    with _IMPORTING:
        if "bm25s" not in sys.modules:
            jax = sys.modules.get("jax")
            sys.modules["jax"] = None  # type: ignore[assignment]  # which hides it from `import`
            try:
                importlib.import_module("bm25s")
            finally:
                del sys.modules["jax"]
                if jax is not None:
                    sys.modules["jax"] = jax
            logging.getLogger("bm25s").setLevel(logging.NOTSET)  # which it sets to DEBUG
        return sys.modules["bm25s"]


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())
