"""Reads JSON files of any size item by item, with the byte offset where each item ends."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any, Final, NamedTuple

from agentgyms.core.errors import DataCorrupt
from agentgyms.data.users_files import skip_mark

CHUNK_BYTES: Final = 1 << 20
MAX_ITEM_CHARS: Final = 1 << 26
"""A longer item is an error: a quote or a bracket is probably missing."""

_BLANKS: Final = " \t\n\r"
_CUT_TAIL: Final = 16  # characters: longer than any literal or escape that the end of a chunk cuts
_NUMBER_TAIL: Final = 2  # characters: `1` may continue as `1.5` or `1e-5` in the next chunk


class Item(NamedTuple):
    """One item of a file; `key` is "" in a list, and `end` is the byte after it."""

    key: str
    value: Any
    end: int


def list_items(path: Path, *, chunk_bytes: int = CHUNK_BYTES) -> Iterator[Item]:
    """Yield the items of a UTF-8 JSON list; else raise `DataCorrupt`, which names the byte."""
    with path.open("rb") as file:
        text = _Text(path, file, chunk_bytes)
        text.expect("[", "a list of items")
        if text.at_end("]", first=True):
            return
        while True:
            yield Item("", text.value(), text.byte)
            if text.at_end("]"):
                return


def object_items(path: Path, *, chunk_bytes: int = CHUNK_BYTES) -> Iterator[Item]:
    """Yield the items of a file with one JSON object, repeated keys too; see `list_items`."""
    with path.open("rb") as file:
        text = _Text(path, file, chunk_bytes)
        text.expect("{", "an object with an item for each key")
        if text.at_end("}", first=True):
            return
        while True:
            key = text.value()
            if not isinstance(key, str):
                raise text.corrupt(f"found the key {key!r}, expected a string")
            text.expect(":", "a colon after a key")
            yield Item(key, text.value(), text.byte)
            if text.at_end("}"):
                return


class _Text:
    """The text of a file, of which a part is in memory."""

    def __init__(self, path: Path, file: BufferedReader, chunk_bytes: int) -> None:
        self._path, self._file, self._chunk_bytes = path, file, chunk_bytes
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._decode = json.JSONDecoder().raw_decode
        self._text, self._at, self._ended = "", 0, False
        try:
            self.byte = self._read = skip_mark(file)
        except UnicodeError as e:
            raise DataCorrupt(f"{path}: {e}") from None

    def corrupt(self, what: str, chars: int = 0) -> DataCorrupt:
        """Return the error for something found `chars` characters after the current position."""
        byte = self.byte + _num_bytes(self._text[self._at : self._at + chars])
        return DataCorrupt(f"{self._path}, byte {byte}: {what}; get the file again")

    def expect(self, mark: str, what: str) -> None:
        found = self._peek()
        if found != mark:
            raise self.corrupt(f"found {_describe(found)}, expected {what} ({mark!r})")
        self._advance(1)

    def at_end(self, end: str, *, first: bool = False) -> bool:
        """Return whether the list or object ends here; else read the comma between items."""
        found = self._peek()
        if found == end:
            self._advance(1)
            if rest := self._peek():
                raise self.corrupt(f"found {_describe(rest)}, expected the end of the file")
            return True
        if first:
            return False
        if found != ",":
            raise self.corrupt(f"found {_describe(found)}, expected ',' or {end!r}")
        self._advance(1)
        return False

    def value(self) -> Any:
        self._peek()
        while True:
            try:
                value, end = self._decode(self._text, self._at)
            except json.JSONDecodeError as e:
                self._check_truncated(e)
            except (RecursionError, ValueError) as e:  # nested too deep, or a number too long
                raise self.corrupt(f"an item cannot be read ({type(e).__name__}: {e})") from None
            else:
                if self._ended or end + _NUMBER_TAIL < len(self._text):
                    self._advance(end - self._at)
                    return value
            self._refill()

    def _check_truncated(self, error: json.JSONDecodeError) -> None:
        """Raise unless the item may be incomplete because only a part of it is in memory."""
        whole = len(self._text) - (0 if self._ended else _CUT_TAIL)
        cut = error.msg.startswith("Unterminated") or error.pos >= whole
        if self._ended and cut:
            raise self.corrupt(
                "an item begins here and the file ends within it: the file is truncated"
            ) from None
        if self._ended or not cut:
            raise self.corrupt(f"not JSON: {error.msg}", error.pos - self._at) from None
        if len(self._text) - self._at > MAX_ITEM_CHARS:
            raise self.corrupt(f"an item is longer than {MAX_ITEM_CHARS} characters") from None

    def _peek(self) -> str:
        """Return the next character that is not blank, "" at the end of the file."""
        while True:
            text, at = self._text, self._at
            while at < len(text) and text[at] in _BLANKS:
                at += 1
            self._advance(at - self._at)
            if at < len(text):
                return text[at]
            if self._ended:
                return ""
            self._refill()

    def _advance(self, chars: int) -> None:
        self.byte += _num_bytes(self._text[self._at : self._at + chars])
        self._at += chars

    def _refill(self) -> None:
        """Read more, twice as much as is unparsed, so that a long item is not parsed many times."""
        rest = self._text[self._at :]
        chunk = self._file.read(max(self._chunk_bytes, 2 * len(rest)))
        self._ended = not chunk
        held = len(self._decoder.getstate()[0])
        try:
            more = self._decoder.decode(chunk, final=self._ended)
        except UnicodeDecodeError as e:
            raise DataCorrupt(
                f"{self._path}, byte {self._read - held + e.start}: not UTF-8 ({e.reason}); get "
                "the file again"
            ) from None
        self._read += len(chunk)
        self._text, self._at = rest + more, 0


def _num_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _describe(found: str) -> str:
    return repr(found) if found else "the end of the file"
