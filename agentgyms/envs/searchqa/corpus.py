"""Documents, and JSON-lines files of them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agentgyms.core import keys
from agentgyms.core.errors import DataCorrupt
from agentgyms.data import users_files
from agentgyms.data.users_files import parse_json, state_of


@dataclass(frozen=True, slots=True)
class Document:
    """A paragraph; `contents` is the title in quotes, a line break, the text; `id` may be ""."""

    doc_id: str
    contents: str

    @property
    def title(self) -> str:
        """The first line without its quotes."""
        return self.contents.partition("\n")[0].strip().removeprefix('"').removesuffix('"')

    @property
    def text(self) -> str:
        """The text after the title, on one line."""
        return " ".join(self.contents.partition("\n")[2].split())

    @property
    def key(self) -> str:
        """The identity of the document: its id, else a digest of its contents."""
        return self.doc_id or keys.digest(self.contents)


def read_document(fields: Mapping[str, Any]) -> Document:
    """Return a document from `contents` and, if any, `id`; `ValueError` for a wrong type."""
    contents, doc_id = fields.get("contents"), fields.get("id", "")
    if not isinstance(contents, str) or not contents.strip():
        raise ValueError(f"'contents' must be a text, got {contents!r:.60}")
    if not isinstance(doc_id, str | int) or isinstance(doc_id, bool):
        raise ValueError(f"'id' must be a string or an integer, got {doc_id!r:.60}")
    return Document(str(doc_id), contents)


def load_corpus(path: str | os.PathLike[str]) -> list[Document]:
    r"""Return the documents of a JSON-lines file in Search-R1's format.

    A line is `{"id": "7", "contents": "\"Title\"\ntext"}`.

    Raises:
        DataMissing: The file does not exist.
        DataCorrupt: A line is not a document, an id occurs twice, or the file is empty; the
            message names file and line.
    """
    documents: dict[str, Document] = {}
    for place, fields in read_lines(path):
        try:
            document = read_document(fields)
        except ValueError as e:
            raise DataCorrupt(f"{place}: {e}") from None
        if not document.doc_id:
            raise DataCorrupt(f"{place}: the document has no 'id'")
        if document.doc_id in documents:
            raise DataCorrupt(f"{place}: the id {document.doc_id!r} occurs twice")
        documents[document.doc_id] = document
    if not documents:
        raise DataCorrupt(f"{os.fspath(path)} holds no document: expected JSON lines")
    return list(documents.values())


def read_lines(path: str | os.PathLike[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (place, object) for each line of a JSON-lines file; blank lines are skipped."""
    file, number = state_of(path, "one of JSON lines").path, 0
    try:
        for number, line in enumerate(users_files.read_lines(file), 1):
            if not line.strip():
                continue
            fields = parse_json(line)
            if not isinstance(fields, dict):
                raise ValueError(f"expected a JSON object, got {fields!r:.60}")
            yield f"{file}, line {number}", fields
    except ValueError as e:
        number += isinstance(e, UnicodeError)  # a line that was not even split off
        raise DataCorrupt(f"{file}, line {number}: no JSON: {e}") from None
