"""Reads the files of a folder or an archive one by one; file names are checked."""

from __future__ import annotations

import errno
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from typing import IO, Final, Self

from agentgyms.core.errors import DataCorrupt, DataError, DataMissing
from agentgyms.data.users_files import files_below, is_litter

Keep = Callable[[str], str | None]

_DAMAGE: Final = (
    zipfile.BadZipFile, tarfile.TarError, EOFError, LZMAError, zlib.error, NotImplementedError,
    OSError, UnicodeDecodeError, MemoryError,
)  # fmt: skip
"""Errors of the readers of archives; an `OSError` without a number, or for a place before 0.

A damaged .xz may ask for more memory than there is.
"""
_NO_NAME: Final = re.compile(r"[\0-\x1f\ud800-\udfff]")
_CHUNK_BYTES: Final = 1 << 20
_MAX_IN_MEMORY: Final = 1 << 28
_MAX_RATIO: Final = 200
"""Most bytes that a byte of an archive may become; ALFWorld's games as .tar.xz become 53."""
_ALWAYS_UNPACKED: Final = 1 << 26
"""Bytes that an archive of any size may become."""


def read_files(path: Path, keep: Keep) -> Iterator[tuple[str, bytes]]:
    """Yield new name and content of every file that `keep` selects, in any order.

    `path` is a folder, a .zip or a .tar with any compression. `keep` maps a file's name, with
    slashes, to its new relative name, or to None to skip it. Links in a folder are followed. Links
    and devices in an archive are skipped, and so are macOS's own files, `__MACOSX` and `._*`.

    Raises `DataMissing` if `path` does not exist. Raises `DataCorrupt` if it is no folder or
    archive, is damaged or encrypted, has a file twice, or `keep` returned an unsafe name.
    """
    with _report_damage(path):
        for name, chunks in _files(path, keep):
            content = bytearray()
            for chunk in chunks:
                content += chunk
                if len(content) > _MAX_IN_MEMORY:
                    raise DataCorrupt(f"{name} in {path} has more than {_MAX_IN_MEMORY >> 20} MiB")
            yield name, bytes(content)


def copy_files(path: Path, keep: Keep, target: Path) -> None:
    """Copy every file that `keep` selects to the folder `target`, in chunks; see `read_files`."""
    with _report_damage(path):
        for name, chunks in _files(path, keep):
            copy = target / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            with copy.open("wb") as written:
                written.writelines(chunks)


@contextmanager
def _report_damage(path: Path) -> Iterator[None]:
    try:
        yield
    except DataError:
        raise
    except _DAMAGE as e:
        if isinstance(e, OSError) and e.errno not in (None, errno.EINVAL):
            raise  # of the file system
        raise DataCorrupt(f"{path} is damaged: {e or type(e).__name__}; get it again") from e


class _Limit:
    """Bounds what an archive may unpack to by its size."""

    def __init__(self, path: Path) -> None:
        self._path, self._unpacked = path, 0
        # against small archives that unpack to terabytes
        self._most = max(_ALWAYS_UNPACKED, _MAX_RATIO * path.stat().st_size)

    def chunks(self, file: IO[bytes]) -> Iterator[bytes]:
        while chunk := file.read(_CHUNK_BYTES):
            self._unpacked += len(chunk)
            self.check(self._unpacked)
            yield chunk

    def check(self, unpacked: int) -> None:
        if unpacked > self._most:
            raise DataCorrupt(
                f"{self._path} unpacks to more than {_MAX_RATIO} times its size, as data sets do "
                "not: get it again, or unpack it yourself and give the folder"
            )


def _files(path: Path, keep: Keep) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Yield names and contents one by one; each file is closed before the next."""
    seen: set[str] = set()
    for name, chunks in _open_files(path, keep):
        if name in seen:
            raise DataCorrupt(f"{path} holds {name} twice: expected each file once")
        seen.add(name)
        yield name, chunks


def _open_files(path: Path, keep: Keep) -> Iterator[tuple[str, Iterator[bytes]]]:
    if path.is_dir():
        return _folder_files(path, keep)
    if not path.exists():
        raise DataMissing(f"there is no file or folder {path}")
    if not path.is_file():  # a device or a pipe may never end
        raise DataCorrupt(f"{path} is neither a file nor a folder: expected an archive or a folder")
    if zipfile.is_zipfile(path):
        return _zip_files(path, keep, _Limit(path))
    if tarfile.is_tarfile(path):
        return _tar_files(path, keep, _Limit(path))
    raise DataCorrupt(f"{path} is neither a folder nor a whole .zip or .tar archive")


def _folder_files(root: Path, keep: Keep) -> Iterator[tuple[str, Iterator[bytes]]]:
    taken: dict[str, Path] = {}
    for path in files_below(root):
        target = _target_name(path.relative_to(root).as_posix(), keep)
        # A file that is reached on two ways, through a link, is one file.
        if target is None or (target in taken and path.samefile(taken[target])):
            continue
        taken[target] = path
        with path.open("rb") as file:
            yield target, iter(partial(file.read, _CHUNK_BYTES), b"")


def _zip_files(path: Path, keep: Keep, limit: _Limit) -> Iterator[tuple[str, Iterator[bytes]]]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if not member.filename:
                raise DataCorrupt(f"{path} has a file without a name: get it again")
            target = None if member.is_dir() else _target_name(member.filename, keep)
            if target is not None:
                try:
                    file = archive.open(member)
                except RuntimeError as e:  # encrypted, or an unknown compression method
                    raise DataCorrupt(f"{member.filename} in {path} cannot be read: {e}") from None
                with file:
                    yield target, limit.chunks(file)


class _Header(tarfile.TarInfo):
    """A header that raises if damaged; tarfile would treat it as the end of the archive."""

    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> Self:
        try:
            return super().fromtarfile(archive)
        except tarfile.HeaderError as e:
            if type(e).__name__ == "EOFHeaderError":  # the block of zeros at the end
                raise
            raise tarfile.ReadError(f"{e} before the end of the archive") from None


def _tar_files(path: Path, keep: Keep, limit: _Limit) -> Iterator[tuple[str, Iterator[bytes]]]:
    # A stream is read once, in order: seeking in a compressed archive would start from the front.
    with tarfile.open(path, "r|*", tarinfo=_Header) as archive:
        for member in archive:
            limit.check(member.offset_data + member.size)  # passing over it unpacks it, too
            target = _target_name(member.name, keep) if member.isreg() else None
            if target is not None:
                file = archive.extractfile(member)
                assert file is not None
                yield target, limit.chunks(file)


def _target_name(name: str, keep: Keep) -> str | None:
    """Return the new name of a file, None to skip it; it must stay inside the target folder."""
    name = name.replace("\\", "/")
    target = None if is_litter(name) else keep(name)
    if target is None:
        return None
    parts = PurePosixPath(target).parts
    if not parts or ".." in parts or PurePosixPath(target).is_absolute() or ":" in target:
        raise DataCorrupt(f"{name!r} would be unpacked outside its folder")
    if _NO_NAME.search(target):
        raise DataCorrupt(f"{name!r} is no name for a file: no UTF-8, or a control character")
    return target
