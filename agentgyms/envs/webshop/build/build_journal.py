"""The journal of a build: its progress, from which a later build resumes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from agentgyms.data.json_text import parse_json

_CHUNK_BYTES: Final = 1 << 20


class Shard(NamedTuple):
    """A part of the written file that is synced to disk.

    `num_items` counts the items of the source so far, with the skipped ones; `source_end` is the
    byte after the last of them in the source, `end` the byte after the part in the written file.
    """

    num_items: int
    source_end: int
    end: int
    sha256: str


class Journal:
    """The shards of a file that are written, and the part of the source they cover.

    A journal of another source is ignored, as are all shards from the first damaged one on. The
    file is truncated after the last intact shard.
    """

    def __init__(self, file: Path, target: Path, signature: list[list[object]]) -> None:
        """Read the journal of a source with this signature; truncate `target` to intact shards."""
        self._file, self._target, self._signature = file, target, signature
        self.joined, shards = _read(file, signature)
        self._shards = _intact(target, shards)
        with target.open("ab") as written:
            written.truncate(self._shards[-1].end if self._shards else 0)
        self._save()

    @property
    def num_items(self) -> int:
        """Number of items of the source that are done."""
        return self._shards[-1].num_items if self._shards else 0

    @property
    def source_end(self) -> int:
        """Number of bytes of the source that are done."""
        return self._shards[-1].source_end if self._shards else 0

    def join_done(self) -> None:
        """Record that the database is complete."""
        self.joined = True
        self._save()

    def rows(self) -> Iterator[bytes]:
        """Yield the lines of the shards."""
        with self._target.open("rb") as file:
            yield from file

    def writer(self) -> ShardWriter:
        """Return a writer of the missing shards; a context manager."""
        return ShardWriter(self, self._target)

    def append(self, shard: Shard) -> None:
        """Record a shard that is on disk."""
        self._shards.append(shard)
        self._save()

    def _save(self) -> None:
        found = {"signature": self._signature, "joined": self.joined, "shards": self._shards}
        fresh = self._file.with_suffix(".new")
        fresh.write_text(json.dumps(found), encoding="utf-8")
        fresh.replace(self._file)


class ShardWriter:
    """Appends to the written file; a shard counts once it is closed."""

    def __init__(self, journal: Journal, target: Path) -> None:
        self._journal, self._file, self._digest = journal, target.open("ab"), sha256()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def write(self, row: bytes) -> None:
        """Append a line."""
        self._file.write(row)
        self._digest.update(row)

    def close_shard(self, *, num_items: int, source_end: int) -> None:
        """Sync the written rows to disk, and record them in the journal as a shard."""
        self._file.flush()
        os.fsync(self._file.fileno())
        end = self._file.tell()
        self._journal.append(Shard(num_items, source_end, end, self._digest.hexdigest()))
        self._digest = sha256()


def _read(file: Path, signature: list[list[object]]) -> tuple[bool, list[Shard]]:
    try:
        found: dict[str, Any] = parse_json(file.read_text(encoding="utf-8"))
        if found["signature"] != signature:
            return False, []
        return found["joined"] is True, [Shard(*shard) for shard in found["shards"]]
    except (OSError, ValueError, LookupError, TypeError):
        return False, []


def _intact(target: Path, shards: list[Shard]) -> list[Shard]:
    """Return the shards before the first one with a wrong checksum."""
    good: list[Shard] = []
    if not target.is_file():
        return good
    with target.open("rb") as file:
        for shard in shards:
            digest = sha256()
            left = shard.end - file.tell()
            while left > 0 and (chunk := file.read(min(left, _CHUNK_BYTES))):
                digest.update(chunk)
                left -= len(chunk)
            if digest.hexdigest() != shard.sha256:
                break
            good.append(shard)
    return good
