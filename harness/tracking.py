"""Where figures go beside `metrics.jsonl`: TensorBoard, and Weights & Biases if it is asked for."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import math
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from harness import durable
from harness.errors import ConfigError

if TYPE_CHECKING:
    from harness.config import Config

_WANDB_FILE: Final = "wandb.json"
_PRIVATE: Final = re.compile(r"(^|_)(urls?|tokens?|keys?|secrets?|passwords?|output)(_env)?$")
_NOT_PRIVATE: Final = ("max_tokens", "micro_batch_tokens")
_ADDRESS: Final = re.compile(r"@?\b[a-z][a-z0-9+.-]*://\S*")
_FOLDER: Final = re.compile(r"(^|:)(?:~|\.{0,2}/)(?:[^:]*/)?")
"""What leads to a file; names of models such as `Qwen/Qwen2.5` are none, and stay."""
_QUIET: Final = {
    "console": "off",
    "disable_code": True,
    "disable_git": True,
    "host": "",
    "silent": True,
    "x_disable_meta": True,
    "x_disable_machine_info": True,
    "x_save_requirements": False,
}
"""What wandb would find out by itself: the command line, paths, the machine's name, output."""


class Tracker(Protocol):
    """Takes figures as they come."""

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Take the figures of a step; all are finite."""
        ...

    def flush(self) -> None:
        """Let others see what was written."""
        ...

    def close(self) -> None:
        """Finish."""
        ...


class TensorBoard:
    """Event files in the run's folder.

    Args:
        folder: The run's.
        resume_step: The run goes on after it: TensorBoard hides what was written of later steps.
    """

    def __init__(self, folder: Path, resume_step: int | None = None) -> None:
        """Open a new file."""
        from torch.utils.tensorboard import SummaryWriter

        purge = None if resume_step is None else resume_step + 1
        self._board: Any = SummaryWriter(str(folder / "tensorboard"), purge_step=purge)

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Take the figures of a step."""
        for name, value in values.items():
            self._board.add_scalar(name, value, step)

    def flush(self) -> None:
        """Write what is in memory."""
        self._board.flush()

    def close(self) -> None:
        """Close the file."""
        self._board.close()


class WeightsAndBiases:
    """A run on Weights & Biases; its id stays in the run's folder, and a resumed run goes on in it.

    Figures have the training step as their x-axis. Steps that are run again after a kill are sent
    again: their points lie on each other where the run repeats itself. Sent are the figures, the
    machine's load as wandb reads it, and the configuration as `shareable` has it.

    Args:
        folder: The run's.
        config: Of the run; `log.wandb` is the project.
    """

    def __init__(self, folder: Path, config: Config) -> None:
        """Begin the run or go on with it.

        Raises:
            ConfigError: wandb is not installed, or has no account to send to.
        """
        check(config)
        import wandb

        known = wandb.Settings.model_fields
        try:
            self._run = wandb.init(
                project=config.log.wandb,
                id=_run_id(folder),
                resume="allow",
                name=config.run.name,
                dir=str(folder),
                config=shareable(config),
                tags=tags(config),
                settings=wandb.Settings(**{k: v for k, v in _QUIET.items() if k in known}),
            )
        except wandb.errors.Error as e:
            raise ConfigError(
                f"log.wandb cannot begin: {e}. Log in by `wandb login`, keep the figures here by "
                "WANDB_MODE=offline, or leave log.wandb out"
            ) from e
        self._run.define_metric("step", hidden=True)
        self._run.define_metric("*", step_metric="step")

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Send the figures of a step."""
        self._run.log({"step": step, **values})

    def flush(self) -> None:
        """Do nothing: they are under way."""

    def close(self) -> None:
        """Wait until all is sent, or on the disk where the mode is offline."""
        self._run.finish()


def open_all(config: Config, folder: Path, resume_step: int | None = None) -> list[Tracker]:
    """Return the trackers that a run asks for.

    Args:
        config: Of the run.
        folder: The run's.
        resume_step: The step of the checkpoint it goes on from, or None for a new run.
    """
    trackers: list[Tracker] = []
    if config.log.tensorboard:
        trackers.append(TensorBoard(folder, resume_step))
    if config.log.wandb is not None:
        trackers.append(WeightsAndBiases(folder, config))
    return trackers


def check(config: Config) -> None:
    """Refuse trackers whose packages are missing.

    Raises:
        ConfigError: One is.
    """
    if config.log.wandb == "":
        raise ConfigError("log.wandb must be the name of a project on Weights & Biases, got ''")
    if config.log.wandb is not None and importlib.util.find_spec("wandb") is None:
        raise ConfigError(
            f"log.wandb={config.log.wandb!r} needs the package wandb, which is not installed: "
            "pip install wandb, or leave log.wandb out"
        )


def tags(config: Config) -> list[str]:
    """Return what tells a run from others: method, environment and model."""
    model = Path(config.policy.model).name
    return [config.method.name, config.env.id.removeprefix("agentgyms/"), model]


def shareable(config: Config) -> dict[str, Any]:
    """Return the configuration for others' eyes: without addresses, keys and folders."""
    cleaned: dict[str, Any] = _cleaned(json.loads(json.dumps(dataclasses.asdict(config))))
    return cleaned


def _cleaned(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _cleaned(v) for k, v in value.items() if not _is_private(k)}
    if isinstance(value, list):
        return [_cleaned(one) for one in value]
    if isinstance(value, str):
        return _FOLDER.sub(r"\1", _ADDRESS.sub("", value))
    return value


def _is_private(name: str) -> bool:
    return name not in _NOT_PRIVATE and _PRIVATE.search(name) is not None


def _run_id(folder: Path) -> str:
    """Return the run's id on Weights & Biases, made when it is first asked for."""
    path = folder / _WANDB_FILE
    if path.is_file():
        return str(json.loads(path.read_text(encoding="utf-8"))["id"])
    made = secrets.token_hex(4)
    durable.write(path, json.dumps({"id": made}) + "\n")
    return made


def finite(values: Mapping[str, float]) -> dict[str, float]:
    """Return the values that are numbers, which is what trackers take."""
    return {name: value for name, value in values.items() if math.isfinite(value)}
