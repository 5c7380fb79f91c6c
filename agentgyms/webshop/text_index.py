"""The search: BM25 over the products' texts, as Lucene ranks."""

from __future__ import annotations

import shutil
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from agentgyms.errors import BadOption, DataCorrupt
from agentgyms.webshop.analyzer import analyze
from agentgyms.webshop.array_files import TABLE, map_array, read_table, write_array, write_table
from agentgyms.webshop.bm25 import impact, saturation, weight
from agentgyms.webshop.index_merge import Column, Merger
from agentgyms.webshop.index_runs import RUN_TOKENS, RunWriter
from agentgyms.webshop.postings import Postings, Term
from agentgyms.webshop.product import Product

Array = npt.NDArray[Any]

VERSION: Final = {"format": 1, "analyzer": 1}
"""Of the files, and of what `analyze` makes of a text."""

_ARRAYS: Final = (
    "terms", "term_start", "posting_start", "pair", "document", "code", "most", "rank",
)  # fmt: skip
_RUNS: Final = "runs"

_REMEMBERED: Final = 1 << 14  # terms of queries


def document_text(product: Product) -> str:
    """Return what a product is searched by: its title, description, first feature and options."""
    options = ", and ".join(
        f"{name}: {', '.join(values)}" for name, values in product.options.items()
    )
    feature = product.bullet_points[0] if product.bullet_points else ""
    return f"{product.title} {product.description} {feature} {options}".lower()


class TextIndex:
    """An inverted index that is only read; any number of threads and processes may share it.

    Args:
        arrays: See `Merger.columns`, and `rank`, the place of each document in the order of the
            ids. [N]
        num_filled: Documents with any term.
        num_tokens: Terms of all documents.
    """

    def __init__(self, arrays: Mapping[str, Array], *, num_filled: int, num_tokens: int) -> None:
        self._terms, self._term_start = arrays["terms"], arrays["term_start"]
        self._posting_start, self._most = arrays["posting_start"], arrays["most"]
        self._rank, self._num_filled = arrays["rank"], num_filled
        pair = arrays["pair"]
        self._postings = Postings(
            arrays["document"],
            arrays["code"],
            saturation(pair >> 8, pair & 255, num_tokens / max(num_filled, 1)),
            num_documents=len(self),
        )
        self._number = lru_cache(_REMEMBERED)(self._find)

    @classmethod
    def open(cls, folder: str | Path) -> TextIndex:
        """Return the index in a folder, mapped into memory.

        Raises:
            DataMissing: A file is not there.
            DataCorrupt: A file is damaged, or of another version.
        """
        folder = Path(folder)
        table = read_table(folder, VERSION)
        arrays = {name: map_array(folder, name, table) for name in _ARRAYS}
        try:
            _check(arrays, table)
            return cls(arrays, num_filled=table["num_filled"], num_tokens=table["num_tokens"])
        except (LookupError, TypeError, ValueError) as e:
            raise _damaged(e, folder) from None

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self._rank)

    def search(self, query: str, k: int = 50) -> list[tuple[int, float]]:
        """Return the positions and scores of the documents that match best.

        A document matches if it has one of the query's terms; those of equal score come in the
        order of their ids.

        Args:
            query: Any string; one without terms finds nothing.
            k: At most how many, positive.

        Raises:
            BadOption: `k` is not a positive integer.
            DataCorrupt: The index is damaged.
        """
        if not isinstance(k, int) or isinstance(k, bool) or k < 1:
            raise BadOption(f"k must be a positive integer, got {k!r}")
        counts = Counter(analyze(query))
        try:
            terms = self._lookup(counts)
            if not terms:
                return []
            document, score = self._postings.score(terms, k)
            return self._best(document, score.astype(np.float32), k)
        except (IndexError, ValueError) as e:
            raise _damaged(e) from None

    def _lookup(self, counts: Mapping[str, int]) -> list[Term]:
        """Return those of a query's terms that any document has, the rarest first."""
        found = []
        for term, count in counts.items():
            number = self._number(term)
            if number is not None:
                start, stop = self._posting_start[number : number + 2].tolist()
                of_term = weight(stop - start, self._num_filled, count)
                most = impact(of_term, self._most[number : number + 1]).item()
                found.append(Term(stop - start, start, of_term, most))
        return sorted(found, key=lambda term: (term.size, term.start))

    def _find(self, term: str) -> int | None:
        wanted = term.encode()
        number = bisect_left(range(len(self._most)), wanted, key=self._term)
        return number if number < len(self._most) and self._term(number) == wanted else None

    def _term(self, number: int) -> bytes:
        start, stop = self._term_start[number : number + 2].tolist()
        return self._terms[start:stop].tobytes()

    def _best(self, document: Array, score: Array, k: int) -> list[tuple[int, float]]:
        if len(score) > k:
            left = np.flatnonzero(score >= np.partition(score, -k)[-k])
            document, score = document[left], score[left]
        order = np.lexsort((self._rank[document], -score))[:k]
        return list(zip(document[order].tolist(), score[order].tolist(), strict=True))


class IndexBuilder:
    """Builds an index document by document.

    Args:
        folder: Where its files go, which is made; None keeps the index in memory.
        run_tokens: How many tokens are sorted at once; the index does not depend on it.
    """

    def __init__(self, folder: str | Path | None, *, run_tokens: int = RUN_TOKENS) -> None:
        self._folder = None if folder is None else Path(folder)
        runs = self._folder and self._folder / _RUNS
        if runs:
            shutil.rmtree(runs, ignore_errors=True)
            runs.mkdir(parents=True)
        self._writer = RunWriter(runs, run_tokens)

    def add(self, text: str) -> None:
        """Add a document; its position is the number of those before it."""
        self._writer.add(text)

    def finish(self, doc_ids: Sequence[str]) -> TextIndex:
        """Return the index; with a folder, its files are then complete.

        Args:
            doc_ids: The ids of the documents by position, which order those of equal score.

        Raises:
            BadOption: There are not as many ids as documents.
        """
        num_documents = self._writer.num_documents
        if len(doc_ids) != num_documents:
            raise BadOption(f"expected {num_documents} ids, one a document, got {len(doc_ids)}")
        corpus = self._writer.finish()
        facts = {"num_filled": corpus.num_filled, "num_tokens": corpus.num_tokens}
        columns = Merger(corpus).columns()
        if self._folder is None:
            arrays = {name: _joined(column) for name, column in columns}
            return TextIndex(arrays | {"rank": _rank(doc_ids)}, **facts)
        (self._folder / TABLE).unlink(missing_ok=True)  # of an index that is replaced
        rows = {
            name: write_array(
                self._folder, name, column.chunks, dtype=column.dtype, length=column.length
            )
            for name, column in columns
        }
        rank = _rank(doc_ids)
        rows["rank"] = write_array(self._folder, "rank", [rank], dtype=rank.dtype, length=len(rank))
        write_table(self._folder, {**VERSION, **facts}, rows)
        shutil.rmtree(self._folder / _RUNS)
        return TextIndex.open(self._folder)


def _joined(column: Column) -> Array:
    chunks = [chunk.astype(column.dtype) for chunk in column.chunks]
    return np.concatenate([*chunks, np.empty(0, column.dtype)])


def _rank(doc_ids: Sequence[str]) -> Array:
    """Return the place of each id in their order, as Lucene has it: by their bytes. int32 [N]."""
    rank = np.empty(len(doc_ids), np.int32)
    rank[sorted(range(len(doc_ids)), key=doc_ids.__getitem__)] = np.arange(len(doc_ids))
    return rank


def _check(arrays: Mapping[str, Array], table: Mapping[str, Any]) -> None:
    num_terms = len(arrays["most"])
    ends = {"term_start": len(arrays["terms"]), "posting_start": len(arrays["document"])}
    for name, end in ends.items():
        start = arrays[name]
        if len(start) != num_terms + 1 or start[0] != 0 or start[-1] != end:
            raise ValueError(f"{name} does not fit the other arrays")
    if len(arrays["code"]) != len(arrays["document"]):
        raise ValueError("code does not fit the other arrays")
    if not 0 <= table["num_filled"] <= len(arrays["rank"]) or table["num_tokens"] < 0:
        raise ValueError("num_filled or num_tokens is out of range")


def _damaged(error: Exception, folder: Path | None = None) -> DataCorrupt:
    where = f" in {folder}" if folder else ""
    return DataCorrupt(f"the search index{where} is damaged ({error}): import the data set again")
