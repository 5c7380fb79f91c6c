"""Where a model comes from: a hub name, a model's folder, a checkpoint, a training run."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from agentgyms.data.progress_bar import ProgressBar
from agentgyms.data.users_files import is_litter
from harness import config as configs
from harness.evaluation import run_checkpoints
from harness.model import hub
from harness.model.weights import converted
from harness.model.weights.converted import TRAINING_RUN
from harness.runs import checkpoints
from harness.types.errors import ConfigError
from harness.types.json_files import read_object

_KINDS_OF_FILES: Final = (
    "*.safetensors",
    "pytorch_model*.bin",
    "*.json",
    "*.jinja",
    "*.model",
    "*.txt",
)
"""The files of a model: weights, configuration, tokenizer, chat template."""

_NOT_THE_MODEL: Final = ("checkpoint.json", "training_args.json", TRAINING_RUN)
_PIECE: Final = 1 << 22


@dataclass(frozen=True, slots=True)
class Source:
    """A model to load."""

    path: str  # folder or hub name; for adapters theirs alone
    local: bool  # it is a folder
    step: int | None = None  # the checkpoint's
    trained: dict[str, Any] | None = None  # the training run's configuration


def find(name: str, checkpoint: str = run_checkpoints.NEWEST) -> Source:
    """Return the model of a name: a hub name, or the folder of a model, a checkpoint or a run.

    A package's model or a GGUF file is converted into the cache first; `checkpoint` chooses one of
    a run, see `run_checkpoints.choose`. Raises `ConfigError` if there is no such folder and it can
    be no hub name either, or the folder holds no model or no such checkpoint.
    """
    folder = Path(converted.folder_of(name, "model.name"))
    if is_run(folder):
        described = _read(folder / "config.json")
        return _model(run_checkpoints.choose(folder, checkpoint, described).folder)
    check_name(name)
    check_checkpoint(name, checkpoint)
    if not folder.is_dir():
        return Source(name, local=False)
    described = _read(folder / "config.json")
    if "model_type" in described or (folder / hub.ADAPTERS).is_file():
        return _model(folder)
    raise ConfigError(
        f"model.name: the folder {name!r} holds neither a model (a config.json with its "
        "model_type) nor a training run"
    )


def check_name(name: str) -> None:
    """Raise `ConfigError` if a model's name is no folder and cannot be a hub name."""
    hub.check_name(name, "model.name")


def is_run(folder: Path) -> bool:
    """Return whether a folder holds a training run; raises `ConfigError` if it is damaged."""
    if not folder.is_dir():
        return False
    hub.check_files(folder)
    described = _read(folder / "config.json")
    if "model_type" in described or (folder / hub.ADAPTERS).is_file():
        return False
    return "policy" in described or (folder / "checkpoints").is_dir()


def check_checkpoint(name: str, checkpoint: str) -> None:
    """Raise `ConfigError` if a checkpoint is chosen of something that is no training run."""
    if checkpoint != run_checkpoints.NEWEST:
        raise ConfigError(
            f"model.checkpoint is {checkpoint!r}, and model.name {name!r:.80} is no training run's "
            "folder: leave model.checkpoint out, or give a run's folder"
        )


def _model(folder: Path) -> Source:
    """Return a model's folder, with step and settings of the run if it is a run's checkpoint."""
    described, values = _read(folder / "checkpoint.json"), {}
    if "step" in described:
        values = _read(folder.resolve().parent.parent / "config.json")
    elif (folder / TRAINING_RUN).is_file():
        described = _read(folder / TRAINING_RUN)
        values = described.get("config", {})
    if "step" not in described:
        return Source(str(folder), local=True)
    trained = None
    if "policy" in values:  # settings newer than the run have their defaults
        trained = configs.to_dict(configs.Config())
        for section, defaults in trained.items():
            given = values.get(section)
            if isinstance(given, dict) and isinstance(defaults, dict):
                trained[section] = {**defaults, **given}
    model = str(checkpoints.model_of(folder))
    return Source(model, local=True, step=int(described["step"]), trained=trained)


def _read(file: Path) -> dict[str, Any]:
    return read_object(file, ConfigError) if file.exists() else {}


def commit(name: str, revision: str | None) -> str | None:
    """Return the commit of a loaded hub model; None if it left no trace on the disk.

    `revision` is a branch, tag or commit; None for the main branch.
    """
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(name, "config.json", revision=revision)
    return Path(found).parent.name if isinstance(found, str) else None


def digest(folder: str | Path) -> str:
    """Return the first 12 hex characters of the SHA-256 over a model's files, by name and content.

    These are weights, configuration, tokenizer and chat template, and the base model of adapters;
    other files, such as an optimizer's state, do not count.
    """
    from harness.model.adapters import base_of  # needs torch

    folder, left_out = Path(folder), set(_NOT_THE_MODEL)
    base = base_of(folder)
    below = digest(base) if base is not None and Path(base).is_dir() else ""
    if below:
        left_out.add(hub.ADAPTERS)
    files = sorted(
        {
            file
            for kind in _KINDS_OF_FILES
            for file in folder.glob(kind)
            if file.is_file() and not is_litter(file.name)
        }
        - {folder / name for name in left_out}
    )
    total = hashlib.sha256(below.encode())
    size = sum(file.stat().st_size for file in files)
    with ProgressBar(
        total=size, desc="hashing the model", unit="B", unit_scale=True, delay=2
    ) as bar:
        for file in files:
            content = hashlib.sha256()
            with file.open("rb") as stream:
                while piece := stream.read(_PIECE):
                    content.update(piece)
                    bar.update(len(piece))
            total.update(f"{file.name} {content.hexdigest()}\n".encode())
    return total.hexdigest()[:12]
