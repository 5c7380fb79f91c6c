"""JSON files of any size, read one item at a time, with the byte where each item ends."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from agentgyms.errors import DataCorrupt

CHUNK_BYTES: Final = 1 << 20
MAX_ITEM_CHARS: Final = 1 << 26
"""A longer item is taken for a missing quote or bracket, not read into memory to its end."""

_BLANKS: Final = " \t\n\r"
_NEAR_END: Final = 16  # characters: a literal or an escape that the chunk cuts is shorter
_NUMBER_TAIL: Final = 2  # characters: `1` may go on as `1.5` or `1e-5` behind the chunk


class Read(NamedTuple):
    """One item of a file.

    Attributes:
        key: Its key in an object, "" in a list.
        value: The item.
        end: Byte after it, from which `list_items` can go on.
    """

    key: str
    value: Any
    end: int


def list_items(path: Path, start: int = 0, *, chunk_bytes: int = CHUNK_BYTES) -> Iterator[Read]:
    """Yield the items of a file that holds one JSON list.

    Args:
        path: The file, in UTF-8.
        start: 0, or the `end` of an item: what comes after it is read.
        chunk_bytes: How much is read at a time.

    Raises:
        DataCorrupt: The file is cut off, is no such list, is no UTF-8, or goes on after the list;
            the message names the byte.
    """
    with path.open("rb") as file:
        text = _Text(path, file, start, chunk_bytes)
        if start == 0:
            text.expect("[", "a list of items")
        if text.follows("]", first=start == 0):
            return
        while True:
            yield Read("", text.value(), text.byte)
            if text.follows("]"):
                return


def object_items(path: Path, *, chunk_bytes: int = CHUNK_BYTES) -> Iterator[Read]:
    """Yield the items of a file that holds one JSON object; a repeated key comes repeatedly.

    Args:
        path: The file, in UTF-8.
        chunk_bytes: How much is read at a time.

    Raises:
        DataCorrupt: As for `list_items`.
    """
    with path.open("rb") as file:
        text = _Text(path, file, 0, chunk_bytes)
        text.expect("{", "an object with an item for each key")
        if text.follows("}", first=True):
            return
        while True:
            key = text.value()
            if not isinstance(key, str):
                raise text.corrupt(f"found the key {key!r}, expected a string")
            text.expect(":", "a colon after a key")
            yield Read(key, text.value(), text.byte)
            if text.follows("}"):
                return


class _Text:
    """The text of a file from some byte on: the part in memory, and where that part begins."""

    def __init__(self, path: Path, file: BinaryIO, start: int, chunk_bytes: int) -> None:
        file.seek(start)
        self._path, self._file, self._chunk_bytes = path, file, chunk_bytes
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._decode = json.JSONDecoder().raw_decode
        self._text, self._at, self._read, self._ended = "", 0, start, False
        self.byte = start

    def corrupt(self, what: str, chars: int = 0) -> DataCorrupt:
        """Return the error for something found some characters after the present place."""
        byte = self.byte + _num_bytes(self._text[self._at : self._at + chars])
        return DataCorrupt(f"{self._path}, byte {byte}: {what}; get the file again")

    def expect(self, mark: str, what: str) -> None:
        """Pass over a mark, which must come next."""
        found = self._next()
        if found != mark:
            raise self.corrupt(f"found {_shown(found)}, expected {what} ({mark!r})")
        self._pass(1)

    def follows(self, end: str, *, first: bool = False) -> bool:
        """Return whether the list or object ends here, else pass over the comma between items."""
        found = self._next()
        if found == end:
            self._pass(1)
            if rest := self._next():
                raise self.corrupt(f"found {_shown(rest)}, expected the end of the file")
            return True
        if first:
            return False
        if found != ",":
            raise self.corrupt(f"found {_shown(found)}, expected ',' or {end!r}")
        self._pass(1)
        return False

    def value(self) -> Any:
        """Return the value that comes next, and pass over it."""
        self._next()
        while True:
            try:
                value, end = self._decode(self._text, self._at)
            except json.JSONDecodeError as e:
                self._must_be_cut(e)
            except (RecursionError, ValueError) as e:  # nested too deep, or a number too long
                raise self.corrupt(f"an item cannot be read ({type(e).__name__}: {e})") from None
            else:
                if self._ended or end + _NUMBER_TAIL < len(self._text):
                    self._pass(end - self._at)
                    return value
            self._refill()

    def _must_be_cut(self, error: json.JSONDecodeError) -> None:
        """Raise unless the error can come from an item that is only partly in memory."""
        whole = len(self._text) - (0 if self._ended else _NEAR_END)
        cut = error.msg.startswith("Unterminated") or error.pos >= whole
        if self._ended and cut:
            raise self.corrupt(
                "an item begins here and the file ends within it: the file is cut off"
            ) from None
        if self._ended or not cut:
            raise self.corrupt(f"no JSON: {error.msg}", error.pos - self._at) from None
        if len(self._text) - self._at > MAX_ITEM_CHARS:
            raise self.corrupt(f"an item is longer than {MAX_ITEM_CHARS} characters") from None

    def _next(self) -> str:
        """Return the next character that is no blank, "" at the end of the file."""
        while True:
            text, at = self._text, self._at
            while at < len(text) and text[at] in _BLANKS:
                at += 1
            self._pass(at - self._at)
            if at < len(text):
                return text[at]
            if self._ended:
                return ""
            self._refill()

    def _pass(self, chars: int) -> None:
        self.byte += _num_bytes(self._text[self._at : self._at + chars])
        self._at += chars

    def _refill(self) -> None:
        """Read on; twice as much as is waiting, so that a long item is not parsed many times."""
        rest = self._text[self._at :]
        chunk = self._file.read(max(self._chunk_bytes, 2 * len(rest)))
        self._ended = not chunk
        held = len(self._decoder.getstate()[0])
        try:
            more = self._decoder.decode(chunk, final=self._ended)
        except UnicodeDecodeError as e:
            raise DataCorrupt(
                f"{self._path}, byte {self._read - held + e.start}: no UTF-8 ({e.reason}); get the "
                "file again"
            ) from None
        self._read += len(chunk)
        self._text, self._at = rest + more, 0


def _num_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _shown(found: str) -> str:
    return repr(found) if found else "the end of the file"
