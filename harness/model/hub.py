"""Names of models: local folders, names at the hub, if it answers, or what is converted."""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import Any, Final

from agentgyms.core.errors import did_you_mean, path_end
from harness.model.weights import converted
from harness.types.errors import ConfigError

_NAME: Final = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")
FOLDERS: Final = {
    "model.name": "a model, of a checkpoint or of a training run",
    "policy.model": "a model or of a checkpoint",
    "teacher.model": "a model or of a checkpoint",
}
"""The contents of the folders that a setting takes."""

ONE_FILE: Final = "model.safetensors"
INDEX: Final = "model.safetensors.index.json"
"""Names of a model's weights: one file, or the list of several."""

ADAPTERS: Final = "adapter_config.json"
"""File that describes the adapters of a folder."""

PICKLE: Final = "pytorch_model.bin"
PICKLE_INDEX: Final = "pytorch_model.bin.index.json"
"""The same of models in torch's own format, which is read without running code."""

_READ: Final = frozenset({".bin", ".jinja", ".json", ".model", ".safetensors", ".txt"})
"""Endings of the names of the files that are read from a model's folder."""

_PATIENCE_S: Final = 5.0
_MOST: Final = 210
"""Characters of another library's error that a message repeats."""


def check_name(name: str, setting: str) -> None:
    """Refuse a name that is no folder's and cannot be a hub's.

    A name below a folder that exists, such as `runs/mine` beside other runs, is meant as a folder.
    `setting` is its key, one of `FOLDERS`. Raises a `ConfigError` that names a similar folder if
    there is one, or a pipe in the folder; or the package or file of a model that is converted.
    """
    if converted.is_converted(name):
        converted.check_source(name, setting)
        return
    folder = Path(name)
    check_files(folder)
    if folder.is_dir() or (_NAME.fullmatch(name) and not ("/" in name and folder.parent.is_dir())):
        return
    beside = [f"{other}" for other in _folders(folder.parent)]
    raise ConfigError(
        f"{setting}: there is no folder {name[:110]!r}; give the folder of {FOLDERS[setting]}, or "
        f"a hub name such as Qwen/Qwen2.5-1.5B-Instruct{did_you_mean(name, beside)[:40]}"
    )


def check_files(folder: Path) -> None:
    """Refuse a model's folder with a pipe, a device or a folder where a file would be read.

    Reading a pipe would wait for ever. Links to files elsewhere are as good as files: the hub's
    cache has nothing else. Raises a `ConfigError` that names it. A folder that does not exist is no
    error.
    """
    try:
        files = sorted(path for path in folder.iterdir() if path.suffix in _READ)
    except OSError:
        return
    for path in files:
        try:
            mode = path.stat().st_mode
        except OSError:  # a link to nothing counts as missing
            continue
        if not stat.S_ISREG(mode):
            what = "a folder" if stat.S_ISDIR(mode) else "a pipe, a socket or a device"
            raise ConfigError(
                f"{path_end(str(path), 110)!r} is {what}, and a model's folder has a file of that "
                "name: put the file there"
            )


def _folders(place: Path) -> list[Path]:
    try:
        return [path for path in sorted(place.iterdir()) if path.is_dir()]
    except OSError:
        return []


def load_options(name: str) -> dict[str, Any]:
    """Return transformers' arguments that load a model from the disk alone, or none.

    If the hub does not answer within 5 s, transformers would ask it again for half a minute.
    """
    return {} if Path(name).is_dir() or _answers() else {"local_files_only": True}


def weights_folder(name: str, revision: str | None = None) -> Path | None:
    """Return the folder with the weights of a model on this machine, or None."""
    for file in (ONE_FILE, INDEX, PICKLE, PICKLE_INDEX):
        found: Any = Path(name) / file
        if not found.is_file() and not Path(name).is_dir():
            from huggingface_hub import try_to_load_from_cache

            found = try_to_load_from_cache(name, file, revision=revision)
        if isinstance(found, str | Path) and Path(found).is_file():
            return Path(found).parent
    return None


def _answers() -> bool:
    from huggingface_hub import constants, get_session

    if constants.HF_HUB_OFFLINE:
        return False
    try:
        get_session().head(constants.ENDPOINT, timeout=_PATIENCE_S)
    except Exception:  # a session of one's own raises errors of any kind
        return False
    return True


def not_loaded(what: str, name: str, error: BaseException) -> ConfigError:
    """Return the one-line error for a model that cannot be loaded; `what` names its purpose."""
    most = None if isinstance(error, ConfigError) else _MOST  # one of ours is short
    reason = " ".join(str(error).split())[:most] or type(error).__name__
    if Path(name).is_dir() or not isinstance(error, OSError):
        return ConfigError(f"{what} {path_end(name)!r} cannot be loaded: {reason}")
    if "local_files_only" in load_options(name):
        reason = "the hub does not answer"
    return ConfigError(
        f"{what} {name!r:.60} cannot be loaded: no such folder is here, nor this hub name on the "
        f"disk ({reason:.60}); run `hf download {name:.60}` where there is a network, and give the "
        "folder that it prints"
    )
