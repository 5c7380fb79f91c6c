"""Where questions and documents come from: the closed world, or the user's files and retrievers."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from agentgyms.errors import BadOption
from agentgyms.searchqa import flashrag
from agentgyms.searchqa.corpus import FileState, load_corpus, state_of
from agentgyms.searchqa.questions import GENERATED_VERSION, QuestionSet, generated_set
from agentgyms.searchqa.retriever import PATIENCE_S, BM25Retriever, Retriever
from agentgyms.searchqa.world import closed_world

SOURCES: Final = ("generated", "flashrag")

FilePath = str | os.PathLike[str]


class Opened(NamedTuple):
    """The questions of a split, which may not have been made yet, and their version."""

    load: Callable[[], QuestionSet]
    version: str


def open_questions(source: str, split: str, data_path: FilePath | None, datasets: Any) -> Opened:
    """Return the questions that an environment's arguments name; files are read at once.

    Raises:
        BadOption: The arguments have values they cannot have, or do not go together.
        DataMissing: A file is not there.
        DataCorrupt: A line holds no question.
    """
    if source not in SOURCES:
        raise BadOption(f"source {source!r} is unknown: expected one of {', '.join(SOURCES)}")
    if source == "generated":
        if data_path is not None or datasets is not None:
            raise BadOption(
                "data_path and datasets are for source='flashrag': leave them out, or pass it"
            )
        return Opened(lambda: generated_set(split), GENERATED_VERSION)
    if data_path is None:
        raise BadOption(
            "source='flashrag' needs data_path: a folder with <data set>/<split>.jsonl, such as "
            "those of RUC-NLPIR/FlashRAG_datasets on Hugging Face, or one .jsonl file"
        )
    listed = isinstance(datasets, Sequence) and not isinstance(datasets, str)
    if datasets is not None and (
        not listed or not datasets or any(not _is_name(name) for name in datasets)
    ):
        raise BadOption(
            f"datasets must be a list of names such as {', '.join(flashrag.DATA_SETS)}, "
            f"got {datasets!r}"
        )
    loaded = flashrag.load_questions(data_path, split, datasets)
    return Opened(lambda: loaded, loaded.version)


def open_retriever(
    source: str,
    corpus: FilePath | None,
    retriever: str | None,
    request_form: str,
    patience_s: float,
) -> tuple[Callable[[], Retriever], bool]:
    """Return what makes the retriever when it is needed, and whether it waits for a server.

    Environments with equal arguments share it.

    Raises:
        BadOption: The arguments have values they cannot have, or do not go together.
        DataMissing: There is no corpus file.
    """
    if corpus is not None and (retriever is not None or source == "generated"):
        raise BadOption(
            "corpus is for source='flashrag' without a retriever: the generated questions have "
            "a corpus of their own, and a retriever has one too"
        )
    if retriever is not None:
        from agentgyms.searchqa.http_retriever import shared_retriever

        remote = shared_retriever(retriever, request_form, patience_s)
        return lambda: remote, True
    if request_form != "queries" or patience_s != PATIENCE_S:
        raise BadOption(
            "request_form and retriever_patience_s are for a retriever: leave them out, or pass "
            "retriever='http://...' as well"
        )
    if source == "generated":
        return closed_world_retriever, False
    if corpus is None:
        raise BadOption(
            "source='flashrag' needs something to search in: pass corpus='file.jsonl', or "
            "retriever='http://host:8000/retrieve'"
        )
    state_of(corpus)  # which raises now, not at the first search
    return lambda: corpus_retriever(corpus), False


@cache
def closed_world_retriever() -> BM25Retriever:
    """Return BM25 over the closed world; made once for a process."""
    return BM25Retriever(closed_world().documents)


def corpus_retriever(path: FilePath) -> BM25Retriever:
    """Return BM25 over a corpus file; made once for a process and state of the file.

    Raises:
        DataMissing: There is no such file.
        DataCorrupt: A line holds no document.
    """
    return _indexed(state_of(path))


@lru_cache(maxsize=2)
def _indexed(file: FileState) -> BM25Retriever:
    return BM25Retriever(load_corpus(file.path))


def _is_name(name: Any) -> bool:
    """Return whether this can be the name of a data set's folder, and of no other folder."""
    return isinstance(name, str) and name == Path(name).name and name not in ("", ".", "..")
