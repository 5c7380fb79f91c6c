"""Question files in FlashRAG's format: one JSON line a question, a folder a data set."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from agentgyms.core import keys
from agentgyms.core.errors import DataCorrupt, DataMissing
from agentgyms.data.users_files import FileState, state_of
from agentgyms.envs.searchqa.corpus import read_lines
from agentgyms.envs.searchqa.questions import Question, QuestionSet

DATA_SETS: Final = (
    *("nq", "triviaqa", "popqa", "hotpotqa", "2wikimultihopqa", "musique", "bamboogle"),
)
"""The seven benchmarks that Search-R1 and its successors report on."""

FILES: Final[Mapping[str, tuple[str, ...]]] = {
    "train": ("train",),
    "valid": ("dev",),
    "test": ("test", "dev"),
    "sample": ("train", "test", "dev"),
}
"""File stems of each split, without `.jsonl`; the first existing file of a data set is read."""

_SAMPLE: Final = 12


class _File(NamedTuple):
    """A question file, and the default data set of its lines."""

    state: FileState
    data_set: str


def load_questions(
    path: str | os.PathLike[str], split: str, data_sets: Sequence[str] | None = None
) -> QuestionSet:
    """Return the questions of a split; cached until a file changes.

    `path` is a folder with `<data set>/<file>.jsonl` (see `FILES`), or one file, which is read for
    every split; a line's `data_source` then names its data set. `sample` is the first 12 questions.
    Without names in `data_sets`, those of the seven benchmarks that exist are read.

    Raises `DataMissing` if the file or folder does not exist, or has no file of the split. Raises
    `DataCorrupt`, which names the line, if a line is not a question or an id occurs twice.
    """
    source = Path(path)
    wanted = None if data_sets is None else frozenset(data_sets)
    if source.is_file():
        return _load((_File(state_of(source), _data_set_name(source)),), split, wanted)
    if not source.is_dir():
        raise DataMissing(
            f"data_path {source} does not exist: expected a folder with <data set>/<split>.jsonl, "
            "or a .jsonl file"
        )
    names = DATA_SETS if data_sets is None else tuple(sorted(set(data_sets)))
    found = {name: _find(source / name, split) for name in names}
    missing = [name for name, file in found.items() if file is None]
    if missing and (data_sets is not None or len(missing) == len(names)):
        expected = " or ".join(f"{file}.jsonl" for file in FILES[split])
        raise DataMissing(
            f"{source} has nothing of split {split!r} of {', '.join(missing)}: expected a folder "
            f"of that name with {expected} in it"
        )
    files = tuple(_File(state_of(p), name) for name, p in found.items() if p is not None)
    return _load(files, split, None)


def _data_set_name(file: Path) -> str:
    """Return the data set of a single file: its own name, or its folder's if that is generic."""
    generic = {name for names in FILES.values() for name in names}
    return file.parent.name if file.stem in generic else file.stem


def _find(folder: Path, split: str) -> Path | None:
    files = (folder / f"{name}.jsonl" for name in FILES[split])
    return next((file for file in files if file.is_file()), None)


@lru_cache(maxsize=8)
def _load(files: tuple[_File, ...], split: str, wanted: frozenset[str] | None) -> QuestionSet:
    seen: set[str] = set()
    everything = (question for file in files for question in _read(file, seen))
    chosen = (q for q in everything if wanted is None or q.family in wanted)
    questions = tuple(islice(chosen, _SAMPLE if split == "sample" else None))
    rows = sorted((q.question_id, q.text, q.golden) for q in questions)
    return QuestionSet(split, questions, f"flashrag-{keys.state_key(rows)[:12]}")


def _read(file: _File, seen: set[str]) -> Iterator[Question]:
    """Yield the questions of a file; adds their ids to `seen`."""
    for place, fields in read_lines(file.state.path):
        try:
            question = _question(fields, file.data_set)
        except ValueError as e:
            raise DataCorrupt(f"{place}: {e}") from None
        if question.question_id in seen:
            raise DataCorrupt(f"{place}: the id {question.question_id!r} occurs twice")
        seen.add(question.question_id)
        yield question


def _question(fields: Mapping[str, Any], data_set: str) -> Question:
    """Return the question of a line; `ValueError` if it holds none."""
    given_id, text, golden = (fields.get(key) for key in ("id", "question", "golden_answers"))
    if not isinstance(given_id, str | int) or isinstance(given_id, bool) or given_id == "":
        raise ValueError(f"'id' must be a string or an integer, got {given_id!r:.60}")
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"'question' must be a text, got {text!r:.60}")
    answers = [golden] if isinstance(golden, str) else golden
    if not isinstance(answers, list) or not answers or any(type(a) is not str for a in answers):
        raise ValueError(f"'golden_answers' must be a list of texts, got {golden!r:.60}")
    family = fields.get("data_source", data_set)
    if not isinstance(family, str) or not family:
        raise ValueError(f"'data_source' must be a name, got {family!r:.60}")
    return Question(f"{family}/{given_id}", family, text.strip(), tuple(answers))
