"""The journal of a build: how far it is, so that a later one can go on after a kill."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

_CHUNK_BYTES: Final = 1 << 20


class Shard(NamedTuple):
    """A part of the written file that is on disk.

    Attributes:
        num_items: How many items of the source were read by then, those passed over included.
        source_end: Byte of the source after the last of them.
        end: Byte of the written file after the part.
        sha256: Checksum of the part.
    """

    num_items: int
    source_end: int
    end: int
    sha256: str


class Journal:
    """Which shards of a file are written, and from how much of the source.

    A journal of another source counts for nothing; nor do the shards from the first one on that
    does not have its checksum. What is behind the last good shard is cut off.

    Attributes:
        joined: Whether the database of the other files is whole.
    """

    def __init__(self, file: Path, target: Path, signature: list[list[object]]) -> None:
        """Read the journal, and cut `target` to what is certain.

        Args:
            file: The journal.
            target: The written file.
            signature: What tells the source from others.
        """
        self._file, self._target, self._signature = file, target, signature
        self.joined, shards = _read(file, signature)
        self._shards = _certain(target, shards)
        with target.open("ab") as written:
            written.truncate(self._shards[-1].end if self._shards else 0)
        self._save()

    @property
    def num_items(self) -> int:
        """Items of the source that are done."""
        return self._shards[-1].num_items if self._shards else 0

    @property
    def source_end(self) -> int:
        """Bytes of the source that are done."""
        return self._shards[-1].source_end if self._shards else 0

    def join_done(self) -> None:
        """Enter that the database is whole."""
        self.joined = True
        self._save()

    def rows(self) -> Iterator[bytes]:
        """Yield the lines of the shards."""
        with self._target.open("rb") as file:
            yield from file

    def writer(self) -> ShardWriter:
        """Return what writes the shards that are missing; for a `with` block."""
        return ShardWriter(self, self._target)

    def enter(self, shard: Shard) -> None:
        """Enter a shard that is on disk."""
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
        """Bring what was written to disk, and enter it in the journal."""
        self._file.flush()
        os.fsync(self._file.fileno())
        end = self._file.tell()
        self._journal.enter(Shard(num_items, source_end, end, self._digest.hexdigest()))
        self._digest = sha256()


def _read(file: Path, signature: list[list[object]]) -> tuple[bool, list[Shard]]:
    try:
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        if found["signature"] != signature:
            return False, []
        return found["joined"] is True, [Shard(*shard) for shard in found["shards"]]
    except (OSError, ValueError, LookupError, TypeError):
        return False, []


def _certain(target: Path, shards: list[Shard]) -> list[Shard]:
    """Return the shards before the first one that does not have its checksum."""
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
