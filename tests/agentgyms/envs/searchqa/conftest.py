"""Small real questions and paragraphs, for the tests that are marked `data`."""

import json
import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def wikipedia(tmp_path_factory):
    """A folder with questions in FlashRAG's format, and a corpus in Search-R1's: `corpus.jsonl`."""
    given = os.environ.get("AGENTGYMS_TEST_DATA")
    source = Path(given, "searchqa") if given else None
    if source is None or not (source / "mini_questions.json").is_file():
        pytest.skip("AGENTGYMS_TEST_DATA names no folder with searchqa/mini_questions.json")
    folder = tmp_path_factory.mktemp("flashrag")
    for row in json.loads((source / "mini_questions.json").read_text(encoding="utf-8")):
        line = {
            "id": row["id"].partition(":")[2],
            "question": row["question"],
            "golden_answers": row["golden_answers"],
            "metadata": {"context": row["context_ids"]},
        }
        file = folder / row["data_source"] / "dev.jsonl"
        file.parent.mkdir(exist_ok=True)
        with file.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(line) + "\n")
    corpus = (source / "mini_corpus.jsonl").read_text(encoding="utf-8")
    (folder / "corpus.jsonl").write_text(corpus, encoding="utf-8")
    return folder
