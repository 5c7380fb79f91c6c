"""Reads users' files; every reader goes through here, so that all of them take the same files.

Texts are UTF-8 with or without a byte order mark, and their lines end with LF, CRLF or CR. Folders
may have links in them, and macOS's own files.
"""

from __future__ import annotations

import codecs
import io
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple, Protocol

from agentgyms.core.errors import DataMissing

_OTHER_MARKS: Final = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
_LITTER: Final = ("__MACOSX", ".DS_Store")

MOST_BYTES: Final = 1 << 26
"""Most bytes of a text that is read as a whole, and of a line: a larger one would take the memory.
"""


class TooLong(UnicodeError):
    """A file or a line is longer than any that a program writes."""


class FileState(NamedTuple):
    """A file with its size and the times of its last changes: a cache key for its contents."""

    path: Path
    size: int
    modified_ns: int
    changed_ns: int


class Peekable(Protocol):
    """A binary file whose first bytes can be seen before they are read."""

    def peek(self, size: int, /) -> bytes:
        """Return some of the next bytes, and leave them."""

    def read(self, size: int, /) -> bytes:
        """Read and return bytes."""

    def readline(self, size: int, /) -> bytes:
        """Read and return a line, or its first bytes."""


def state_of(path: str | os.PathLike[str], expected: str = "") -> FileState:
    """Return the state of a file; raise `DataMissing`, with what was expected, if there is none."""
    file = Path(path)
    if not file.is_file():
        raise DataMissing(f"there is no file {file}{expected and f': expected {expected}'}")
    status = file.stat()
    return FileState(file, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def skip_mark(file: Peekable) -> int:
    """Read the mark of UTF-8, and return its length; `UnicodeError` for another mark."""
    length = _mark_length(file.peek(4)[:4])
    file.read(length)
    return length


def decode(content: bytes) -> str:
    """Return the text of a file's content; raise `UnicodeError` if it is not UTF-8."""
    return content[_mark_length(content[:4]) :].decode()


def _mark_length(first: bytes) -> int:
    for mark, encoding in _OTHER_MARKS.items():
        if first.startswith(mark):
            raise UnicodeError(f"its text is {encoding}: save it as UTF-8")
    return len(codecs.BOM_UTF8) if first.startswith(codecs.BOM_UTF8) else 0


def read_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """Return the content of a file, or raise `TooLong` if it has more than `most` bytes."""
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        plain = stat.S_ISREG(status.st_mode)  # anything else has no size, and perhaps no end
        content = b"" if status.st_size > most else file.read(-1 if plain else most + 1)
    if max(status.st_size, len(content)) > most:
        raise TooLong(f"it has more than {most >> 20} MiB, which are not read")
    return content


def read_text(path: Path, most: int = MOST_BYTES) -> str:
    r"""Return the text of a file with `\n` at the ends of its lines; see `read_bytes`, `decode`."""
    return _with_newlines(decode(read_bytes(path, most)))


def _with_newlines(text: str) -> str:
    return io.StringIO(text, newline=None).read()


def lines_in(text: str) -> list[str]:
    r"""Return a text's lines; only `\n`, `\r\n` and `\r` end one, unlike in `str.splitlines`."""
    lines = _with_newlines(text).split("\n")
    return lines[:-1] if not lines[-1] else lines


def lines_of(file: Peekable) -> Iterator[str]:
    """Yield the lines of a file; `UnicodeError` if one is not UTF-8 or longer than `MOST_BYTES`."""
    skip_mark(file)
    while line := file.readline(MOST_BYTES + 1):
        if len(line) > MOST_BYTES:
            raise TooLong(f"a line has more than {MOST_BYTES >> 20} MiB, which are not read")
        text = line.decode()
        if "\r" in text:
            yield from lines_in(text)
        else:
            yield text.removesuffix("\n")


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file; see `lines_of`."""
    with path.open("rb") as file:
        yield from lines_of(file)


def parse_json(text: str | bytes) -> Any:
    """Return a JSON text's value; `ValueError` for no JSON, no UTF-8 or too deep nesting."""
    try:
        return json.loads(decode(text) if isinstance(text, bytes) else text.removeprefix("\ufeff"))
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def is_litter(name: str) -> bool:
    """Return whether a file, by its name with slashes, is macOS's and not the user's."""
    parts = PurePosixPath(name).parts
    return any(part in _LITTER or part.startswith("._") for part in parts)


def files_below(root: Path) -> Iterator[Path]:
    """Yield the files below a folder in the order of their names, behind linked folders too.

    A folder that is linked from within itself is entered once. macOS's own files are left out.
    """
    yield from _files_below(root, frozenset())


def _files_below(folder: Path, above: frozenset[tuple[int, int]]) -> Iterator[Path]:
    status = folder.stat()
    own = (status.st_dev, status.st_ino)
    if own in above:
        return
    with os.scandir(folder) as entries:
        listed = sorted(entries, key=lambda entry: entry.name)
    for entry in listed:
        if is_litter(entry.name):
            continue
        if entry.is_dir():
            yield from _files_below(folder / entry.name, above | {own})
        elif entry.is_file():
            yield folder / entry.name
