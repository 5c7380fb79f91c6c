"""The files of a folder or an archive, read one by one and without trusting their names."""

from __future__ import annotations

import os
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from typing import IO, Final, Self

from agentgyms.errors import DataCorrupt, DataMissing

Keep = Callable[[str], str | None]

_COPIED_BYTES: Final = 1 << 20


def read_files(path: Path, keep: Keep) -> Iterator[tuple[str, bytes]]:
    """Yield new name and content of every file that `keep` wants, in no particular order.

    Links, devices and folders inside an archive are passed over; in a folder, links to files are
    followed.

    Args:
        path: A folder, a .zip or a .tar with any compression.
        keep: Maps a file's name, with slashes, to the relative name it gets here, or to None.

    Raises:
        DataMissing: There is nothing at `path`.
        DataCorrupt: It is neither folder nor archive, is cut off, is encrypted or packed in a way
            unknown here, holds a file twice, or `keep` gave a bad name.
    """
    with _damage_told(path):
        for name, file in _files(path, keep):
            yield name, file.read()


def copy_files(path: Path, keep: Keep, target: Path) -> None:
    """Write every file that `keep` wants to a folder, without holding any in memory.

    Args:
        path: As for `read_files`.
        keep: As for `read_files`.
        target: The folder.

    Raises:
        DataMissing: As for `read_files`.
        DataCorrupt: As for `read_files`.
    """
    with _damage_told(path):
        for name, file in _files(path, keep):
            copy = target / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            with copy.open("wb") as written:
                shutil.copyfileobj(file, written, _COPIED_BYTES)


@contextmanager
def _damage_told(path: Path) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, LZMAError, zlib.error) as e:
        raise DataCorrupt(f"{path} is damaged: {e}; get it again") from e


def _files(path: Path, keep: Keep) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield the files one by one, each open until the next one is asked for."""
    seen: set[str] = set()
    for name, file in _open_files(path, keep):
        if name in seen:
            raise DataCorrupt(f"{path} holds {name} twice: expected each file once")
        seen.add(name)
        yield name, file


def _open_files(path: Path, keep: Keep) -> Iterator[tuple[str, IO[bytes]]]:
    if path.is_dir():
        return _folder_files(path, keep)
    if not path.exists():
        raise DataMissing(f"there is no file or folder {path}")
    if zipfile.is_zipfile(path):
        return _zip_files(path, keep)
    if tarfile.is_tarfile(path):
        return _tar_files(path, keep)
    raise DataCorrupt(f"{path} is neither a folder nor a whole .zip or .tar archive")


def _folder_files(root: Path, keep: Keep) -> Iterator[tuple[str, IO[bytes]]]:
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            kept = _kept(path.relative_to(root).as_posix(), keep)
            if kept is not None and path.is_file():
                with path.open("rb") as file:
                    yield kept, file


def _zip_files(path: Path, keep: Keep) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            kept = None if member.is_dir() else _kept(member.filename, keep)
            if kept is not None:
                try:
                    file = archive.open(member)
                except RuntimeError as e:  # encrypted, or an unknown way of compression
                    raise DataCorrupt(f"{member.filename} in {path} cannot be read: {e}") from None
                with file:
                    yield kept, file


class _Header(tarfile.TarInfo):
    """A member's header; tarfile takes a damaged one after the first for the end of the archive."""

    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> Self:
        try:
            return super().fromtarfile(archive)
        except tarfile.HeaderError as e:
            if type(e).__name__ == "EOFHeaderError":  # the block of zeros at the end
                raise
            raise tarfile.ReadError(f"{e} before the end of the archive") from None


def _tar_files(path: Path, keep: Keep) -> Iterator[tuple[str, IO[bytes]]]:
    # A stream is read once, front to back: seeking in a compressed archive would start anew.
    with tarfile.open(path, "r|*", tarinfo=_Header) as archive:
        for member in archive:
            kept = _kept(member.name, keep) if member.isreg() else None
            if kept is not None:
                file = archive.extractfile(member)
                assert file is not None
                yield kept, file


def _kept(name: str, keep: Keep) -> str | None:
    """Return the new name of a file, which must stay inside the folder it is put in."""
    kept = keep(name.replace("\\", "/"))
    if kept is None:
        return None
    parts = PurePosixPath(kept).parts
    if not parts or ".." in parts or PurePosixPath(kept).is_absolute() or ":" in kept:
        raise DataCorrupt(f"{name!r} would be unpacked outside its folder")
    return kept
