"""BM25 with exact document lengths, in single precision.

WebShop's index cannot be used here: it keeps lengths in one byte and stems words, as Lucene does,
and ranks differently.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from agentgyms.core.errors import DataCorrupt

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
