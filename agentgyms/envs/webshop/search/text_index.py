"""The search index: BM25 over the products' texts, with Lucene's ranking."""

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

from agentgyms.core.errors import BadOption, DataCorrupt
from agentgyms.envs.webshop.product import Product
from agentgyms.envs.webshop.search.analyzer import analyze
from agentgyms.envs.webshop.search.bm25 import impact, saturation, weight
from agentgyms.envs.webshop.search.index_merge import Column, Merger
from agentgyms.envs.webshop.search.posting_runs import RUN_TOKENS, RunWriter
from agentgyms.envs.webshop.search.postings import Postings, Term
from agentgyms.envs.webshop.storage.array_files import (
    TABLE,
    map_array,
    read_table,
    write_array,
    write_table,
)

Array = npt.NDArray[Any]

VERSION: Final = {"format": 1, "analyzer": 1}
"""The versions of the file format and of `analyze`."""

_ARRAYS: Final = (
    "terms", "term_start", "posting_start", "pair", "document", "code", "most", "rank",
)  # fmt: skip
_RUNS: Final = "runs"

_CACHED_TERMS: Final = 1 << 14  # terms of queries


def document_text(product: Product) -> str:
    """Return the indexed text of a product: title, description, first feature and options."""
    options = ", and ".join(
        f"{name}: {', '.join(values)}" for name, values in product.options.items()
    )
    feature = product.bullet_points[0] if product.bullet_points else ""
    return f"{product.title} {product.description} {feature} {options}".lower()


class TextIndex:
    """A read-only inverted index, which threads and processes may share.

    `arrays` are those that `Merger.columns` yields, and `rank`, the rank of each document's id [N].
    `num_filled` counts the documents that have terms.
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
        self._number = lru_cache(_CACHED_TERMS)(self._find)

    @classmethod
    def open(cls, folder: str | Path) -> TextIndex:
        """Return the index in a folder, mapped into memory."""
        folder = Path(folder)
        table = read_table(folder, VERSION)
        arrays = {name: map_array(folder, name, table) for name in _ARRAYS}
        try:
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
            return cls(arrays, num_filled=table["num_filled"], num_tokens=table["num_tokens"])
        except (LookupError, TypeError, ValueError) as e:
            raise _corrupt(e, folder) from None

    def __len__(self) -> int:
        return len(self._rank)

    def search(self, query: str, k: int = 50) -> list[tuple[int, float]]:
        """Return positions and scores of the `k` best documents with any term; ties by id."""
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
            raise _corrupt(e) from None

    def _lookup(self, counts: Mapping[str, int]) -> list[Term]:
        """Return the query's terms that are in the index, the rarest first."""
        found = []
        for term, count in counts.items():
            number = self._number(term)
            if number is not None:
                start, stop = self._posting_start[number : number + 2].tolist()
                term_weight = weight(stop - start, self._num_filled, count)
                most = impact(term_weight, self._most[number : number + 1]).item()
                found.append(Term(stop - start, start, term_weight, most))
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
    """Builds an index in a new folder or in memory; it does not depend on `run_tokens`."""

    def __init__(self, folder: str | Path | None, *, run_tokens: int = RUN_TOKENS) -> None:
        self._folder = None if folder is None else Path(folder)
        runs = self._folder and self._folder / _RUNS
        if runs:
            shutil.rmtree(runs, ignore_errors=True)
            runs.mkdir(parents=True)
        self._writer = RunWriter(runs, run_tokens)

    def add(self, text: str) -> None:
        """Add a document; its position is the number of documents before it."""
        self._writer.add(text)

    def finish(self, doc_ids: Sequence[str]) -> TextIndex:
        """Return the index; `doc_ids`, by position, order equal scores."""
        num_documents = self._writer.num_documents
        if len(doc_ids) != num_documents:
            raise BadOption(f"expected {num_documents} ids, one per document, got {len(doc_ids)}")
        corpus = self._writer.finish()
        metadata = {"num_filled": corpus.num_filled, "num_tokens": corpus.num_tokens}
        columns = Merger(corpus).columns()
        if self._folder is None:
            arrays = {name: _concatenated(column) for name, column in columns}
            return TextIndex(arrays | {"rank": _rank(doc_ids)}, **metadata)
        (self._folder / TABLE).unlink(missing_ok=True)  # of an index that is replaced
        rows = {
            name: write_array(
                self._folder, name, column.chunks, dtype=column.dtype, length=column.length
            )
            for name, column in columns
        }
        rank = _rank(doc_ids)
        rows["rank"] = write_array(self._folder, "rank", [rank], dtype=rank.dtype, length=len(rank))
        write_table(self._folder, {**VERSION, **metadata}, rows)
        shutil.rmtree(self._folder / _RUNS)
        return TextIndex.open(self._folder)


def _concatenated(column: Column) -> Array:
    chunks = [chunk.astype(column.dtype) for chunk in column.chunks]
    return np.concatenate([*chunks, np.empty(0, column.dtype)])


def _rank(doc_ids: Sequence[str]) -> Array:
    """Return the rank of each id in Lucene's order, that of their bytes. int32 [N]."""
    rank = np.empty(len(doc_ids), np.int32)
    rank[sorted(range(len(doc_ids)), key=doc_ids.__getitem__)] = np.arange(len(doc_ids))
    return rank


def _corrupt(error: Exception, folder: Path | None = None) -> DataCorrupt:
    where = f" in {folder}" if folder else ""
    return DataCorrupt(f"the search index{where} is damaged ({error}): import the data set again")
