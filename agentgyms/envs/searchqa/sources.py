"""Sources of questions and documents: the closed world, or the user's files and retrievers."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from agentgyms.core.errors import BadOption
from agentgyms.data.users_files import FileState, state_of
from agentgyms.envs.searchqa import flashrag
from agentgyms.envs.searchqa.corpus import load_corpus
from agentgyms.envs.searchqa.questions import GENERATED_VERSION, QuestionSet, generated_set
from agentgyms.envs.searchqa.retriever import PATIENCE_S, BM25Retriever, Retriever
from agentgyms.envs.searchqa.world import closed_world

SOURCES: Final = ("generated", "flashrag")

FilePath = str | os.PathLike[str]


class QuestionSource(NamedTuple):
    """A loader of a split's questions, and their version."""

    load: Callable[[], QuestionSet]
    version: str


def open_questions(
    source: str, split: str, data_path: FilePath | None, datasets: Any
) -> QuestionSource:
    """Return the questions that an environment's arguments name; files are read immediately."""
    if source not in SOURCES:
        raise BadOption(f"source {source!r} is unknown: expected one of {', '.join(SOURCES)}")
    if source == "generated":
        if data_path is not None or datasets is not None:
            raise BadOption(
                "data_path and datasets are for source='flashrag': leave them out, or pass it"
            )
        return QuestionSource(lambda: generated_set(split), GENERATED_VERSION)
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
    return QuestionSource(lambda: loaded, loaded.version)


def open_retriever(
    source: str,
    corpus: FilePath | None,
    retriever: str | None,
    request_form: str,
    patience_s: float,
) -> tuple[Callable[[], Retriever], bool]:
    """Return a function that makes the shared retriever, and whether that is on a server."""
    if corpus is not None and (retriever is not None or source == "generated"):
        raise BadOption(
            "corpus is for source='flashrag' without a retriever: the generated questions have "
            "a corpus of their own, and a retriever has one too"
        )
    if retriever is not None:
        from agentgyms.envs.searchqa.http_retriever import shared_retriever

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
    state_of(corpus, "one of JSON lines")  # raises now, not at the first search
    return lambda: corpus_retriever(corpus), False


@cache
def closed_world_retriever() -> BM25Retriever:
    """Return BM25 over the closed world; cached."""
    return BM25Retriever(closed_world().documents)


def corpus_retriever(path: FilePath) -> BM25Retriever:
    """Return BM25 over a corpus file; cached until the file changes."""
    return _cached_retriever(state_of(path))


@lru_cache(maxsize=2)
def _cached_retriever(file: FileState) -> BM25Retriever:
    return BM25Retriever(load_corpus(file.path))


def _is_name(name: Any) -> bool:
    """Return whether this is a plain folder name, without path separators."""
    return isinstance(name, str) and name == Path(name).name and name not in ("", ".", "..")
