"""Trackers of a run's metrics: TensorBoard, Weights & Biases and Trackio."""

from __future__ import annotations

import importlib.util
import io
import json
import re
import secrets
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, Final, Protocol

from agentgyms.data import writing
from harness.config import Config, to_dict
from harness.types.errors import CheckpointError, ConfigError
from harness.types.json_files import read_object

_SERVICES: Final = {"wandb": "Weights & Biases", "trackio": "Trackio"}
"""The trackers with a project, by package."""

_PRIVATE: Final = re.compile(r"(^|_)(urls?|tokens?|keys?|secrets?|passwords?|output)(_env)?$")
_NOT_PRIVATE: Final = ("max_tokens", "micro_batch_tokens")
_ADDRESS: Final = re.compile(r"@?\b[a-z][a-z0-9+.-]*://\S*")
_FOLDER: Final = re.compile(r"(^|:)(?:~|\.{0,2}/)(?:[^:]*/)?")
"""The folder part of a path; model names such as `Qwen/Qwen2.5` do not match."""
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
"""Keep wandb from collecting the command line, paths, the machine's name and output."""


class Tracker(Protocol):
    """Receives a run's metrics."""

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Receive the metrics of a step; all are finite."""
        ...

    def flush(self) -> None:
        """Make everything written visible to readers."""
        ...

    def close(self) -> None:
        """Close the tracker."""
        ...


class TensorBoard:
    """Event files in the run's folder; TensorBoard hides values of steps after `resume_step`."""

    def __init__(self, folder: Path, resume_step: int | None = None) -> None:
        from torch.utils.tensorboard import SummaryWriter

        purge = None if resume_step is None else resume_step + 1
        self._board: Any = SummaryWriter(str(folder / "tensorboard"), purge_step=purge)

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Write the metrics of a step."""
        for name, value in values.items():
            self._board.add_scalar(name, value, step)

    def flush(self) -> None:
        """Write buffered values."""
        self._board.flush()

    def close(self) -> None:
        """Close the file."""
        self._board.close()


class WeightsAndBiases:
    """A run on Weights & Biases, in the project `log.project`.

    Its id is kept in the run's folder, so that a resumed run continues it. The x-axis of all
    metrics is the training step. Steps that run again after a kill are sent again. It gets the
    metrics, the machine's load as wandb reads it, and the configuration as `shareable` returns it.
    """

    def __init__(self, folder: Path, config: Config) -> None:
        """Start or continue the run. Raises `ConfigError` if wandb is missing or has no account."""
        check(config)
        import wandb

        supported = wandb.Settings.model_fields
        try:
            self._run = wandb.init(
                project=config.log.project,
                id=_run_id(folder, "wandb"),
                resume="allow",
                name=config.run.name,
                dir=str(folder),
                config=shareable(config),
                tags=tags(config),
                settings=wandb.Settings(**{k: v for k, v in _QUIET.items() if k in supported}),
            )
        except wandb.errors.Error as e:
            raise ConfigError(
                f"wandb cannot start: {e}. Log in with `wandb login`, keep the metrics on this "
                "machine with WANDB_MODE=offline, or leave it out of log.outputs"
            ) from e
        self._run.define_metric("step", hidden=True)
        self._run.define_metric("*", step_metric="step")

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Send the metrics of a step."""
        self._run.log({"step": step, **values})

    def flush(self) -> None:
        """Do nothing: wandb sends metrics by itself."""

    def close(self) -> None:
        """Wait until all metrics are sent, or in offline mode on the disk."""
        self._run.finish()


class Trackio:
    """A run on Trackio, in the project `log.project`; its variables may name a Space or a server.

    Its name ends with an id that is kept in the run's folder, so that a resumed run continues it.
    Steps that run again after a kill are written again. It gets the metrics, and the configuration
    as `shareable` returns it.
    """

    def __init__(self, folder: Path, config: Config) -> None:
        """Start or continue the run. Raises `ConfigError` if Trackio is missing or cannot start."""
        check(config)
        import trackio

        try:
            with redirect_stdout(io.StringIO()):  # it prints how to see the project
                self._run = trackio.init(
                    project=config.log.project,
                    name=f"{config.run.name}-{_run_id(folder, 'trackio')}",
                    resume="allow",
                    config={**shareable(config), "tags": tags(config)},
                    embed=False,
                    auto_log_cpu=False,
                    auto_log_gpu=False,
                )
        except (ValueError, OSError) as e:
            raise ConfigError(
                f"trackio cannot start with log.project={config.log.project!r:.60}: "
                f"{' '.join(str(e).split())}; see the variables TRACKIO_..., or leave it out of "
                "log.outputs"
            ) from e

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Write the metrics of a step."""
        self._run.log(dict(values), step=step)

    def flush(self) -> None:
        """Do nothing: Trackio writes metrics by itself."""

    def close(self) -> None:
        """Wait until all metrics are written or sent."""
        import trackio

        with redirect_stdout(io.StringIO()):
            trackio.finish()


def open_all(config: Config, folder: Path, resume_step: int | None = None) -> list[Tracker]:
    """Return the trackers of a run's configuration; `resume_step` is None for a new run."""
    trackers: list[Tracker] = []
    if "tensorboard" in config.log.outputs:
        trackers.append(TensorBoard(folder, resume_step))
    if "wandb" in config.log.outputs:
        trackers.append(WeightsAndBiases(folder, config))
    if "trackio" in config.log.outputs:
        trackers.append(Trackio(folder, config))
    return trackers


def check(config: Config) -> None:
    """Raise `ConfigError` if a tracker's package is missing or its project has no name."""
    for package, service in _SERVICES.items():
        if package not in config.log.outputs:
            continue
        if not config.log.project:
            raise ConfigError(
                f"log.project must be the name of a project on {service}, got "
                f"{config.log.project!r}: set it, or leave {package!r} out of log.outputs"
            )
        if importlib.util.find_spec(package) is None:
            raise ConfigError(
                f"log.outputs has {package!r}, whose package is not installed, run: pip install "
                f"{package}, or leave it out of log.outputs"
            )


def tags(config: Config) -> list[str]:
    """Return the tags of a run: method, environment and model."""
    model = Path(config.policy.model).name
    return [config.method.name, config.env.id.removeprefix("agentgyms/"), model]


def shareable(config: Config) -> dict[str, Any]:
    """Return the configuration without addresses, keys and folders."""
    cleaned: dict[str, Any] = _cleaned(json.loads(json.dumps(to_dict(config))))
    return cleaned


def _cleaned(value: Any) -> Any:
    if isinstance(value, dict):
        public = [k for k in value if k in _NOT_PRIVATE or not _PRIVATE.search(k)]
        return {k: _cleaned(value[k]) for k in public}
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    if isinstance(value, str):
        return _FOLDER.sub(r"\1", _ADDRESS.sub("", value))
    return value


def _run_id(folder: Path, package: str) -> str:
    """Return the run's id on a service; the first call creates it."""
    path = folder / f"{package}.json"
    if path.is_file():
        run_id = read_object(path, CheckpointError).get("id")
        if not isinstance(run_id, str):
            raise CheckpointError(f"{path} is damaged: it has no id; delete it for a new run there")
        return run_id
    run_id = secrets.token_hex(4)
    writing.write(path, json.dumps({"id": run_id}) + "\n")
    return run_id
