"""The folder that a model's name stands for."""

from __future__ import annotations

import re
import shutil
import zipfile
from functools import lru_cache
from pathlib import Path
from typing import Final

from agentgyms.data.datasets import home
from agentgyms.data.manifests import digest_file
from harness.model.weights.converted import cache
from harness.model.weights.converted.file_names import GGUF
from harness.model.weights.converted.packages import PACKAGES, file_of
from harness.types.errors import ConfigError

NAMES: Final = tuple(PACKAGES)
"""Names of models that packages carry."""

_OF_CACHE: Final = re.compile(rf"({'|'.join(PACKAGES)})-[0-9a-f]{{12}}")


def is_converted(name: str) -> bool:
    """Return whether a name is that of a package's model or of a GGUF file; a folder comes first.

    A GGUF file may be missing.
    """
    is_source = name in PACKAGES or Path(name).suffix.lower() == GGUF
    return is_source and not Path(name).is_dir()


def check_source(name: str, setting: str) -> Path:
    """Return the file, not read, that a name stands for; `ConfigError` if it is missing."""
    if name in PACKAGES:
        return file_of(name, setting)
    file = Path(name)
    if file.is_file():
        return file.resolve()
    here = sorted(one.name for one in file.parent.glob(f"*{GGUF}")) if file.parent.is_dir() else []
    beside = f"; {file.parent!s:.80} has {', '.join(here[:3]):.120}" if here else ""
    raise ConfigError(f"{setting}: there is no GGUF file {name[:110]!r}{beside}")


def folder_of(name: str, setting: str = "policy.model") -> str:
    """Return the folder of a package's model or of a GGUF file, or the name itself.

    The first call converts the file into a folder of the cache, which takes a minute for 135
    million weights; two processes at once convert it once. Later calls compare digests. A local
    folder of the same name comes first. `setting` is the key that names it, for errors. Raises
    `ConfigError` if the package or the file is missing, the file cannot be converted, or the cache
    cannot be written.
    """
    if not is_converted(name):
        return name
    source = check_source(name, setting)
    stat = source.stat()
    return _folder(name, setting, source, home() / "models", (stat.st_size, stat.st_mtime_ns))


@lru_cache(maxsize=64)
def _folder(name: str, setting: str, source: Path, place: Path, _: tuple[int, int]) -> str:
    """Return the verified folder; a process verifies a file once, unless size or time change."""
    label = name if name in PACKAGES else re.sub(r"[^\w.-]", "-", source.stem)
    from harness.model.weights.converted import gguf_file  # needs torch

    write = _unpack if source.suffix == ".zip" else gguf_file.convert
    try:
        return str(cache.folder(source, place, label, write))
    except ConfigError as e:
        raise ConfigError(f"{setting} {name!r:.110} cannot be converted: {e}") from e


def base_again(folder: str) -> str | None:
    """Return the name of the package's model whose folder of the cache this was, else None.

    Adapters name their base by its folder. A file of another content is another model.
    """
    found = _OF_CACHE.fullmatch(Path(folder).name)
    if found is None:
        return None
    try:
        digest = digest_file(check_source(found[1], "policy.model"))
    except ConfigError:
        return found[1]  # what opens it names the package
    return found[1] if cache.name_of(found[1], digest) == found[0] else None


def _unpack(source: Path, folder: Path) -> None:
    with zipfile.ZipFile(source) as archive:
        for member in archive.infolist():
            target = folder / member.filename
            if not target.resolve().is_relative_to(folder.resolve()):
                raise ConfigError(f"{source.name} has a file outside of it, {member.filename!r}")
            if member.is_dir():
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(member) as packed, target.open("wb") as file:
                shutil.copyfileobj(packed, file)
