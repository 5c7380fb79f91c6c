"""The folder of a run: its configuration, provenance and results."""

from __future__ import annotations

import json
import platform
import re
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from agentgyms.core.errors import AgentGymsError, path_end
from agentgyms.data import writing
from harness import config as configs
from harness.config import Config
from harness.config.section import folder_name
from harness.runs import checkpoints, metrics
from harness.runs.folder_lock import FolderLock
from harness.runs.versions import versions
from harness.types.errors import CheckpointError, ConfigError
from harness.types.json_files import read_object

_SECTIONS: Final = ("run", "env", "policy", "agent", "rollout", "method", "optimizer")
"""Sections of the configuration that every version has written."""

_STEP: Final = re.compile(r"step-(\d+)-?(.*)\.jsonl?(?:\.gz)?")
"""Name of a step's file: the number of the step, and the split of an evaluation."""


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Files of one run.

        config.json       the resolved configuration
        provenance.json   versions, git revision, seed, machine
        metrics.jsonl     one line per step and evaluation
        evaluations/      every episode of every evaluation
        rollouts/         rollouts of the last training step, and of others with `run.keep_rollouts`
        checkpoints/      to resume from; each is a model that transformers loads, and the link
                          `best` points to the one with the best validation
        reference/        the policy after the warm start, if the run needs the reference policy
        tensorboard/ wandb/ trackio.json curve.png training.png table.md
        gateway.jsonl     names of the rollouts behind a gateway
        warmstart/        an interrupted warm start, to resume from
        .lock             names the process that writes the folder

    The first of the processes that train the run holds the `lock`.
    """

    path: Path
    lock: FolderLock = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "lock", FolderLock(self.path))

    @classmethod
    def from_config(cls, config: Config) -> RunFolder:
        """Return the folder of a configuration; `ConfigError` if `run.name` is empty or a path."""
        try:
            name = folder_name(config.run.name or ".")
        except ValueError as e:
            raise ConfigError(f"run.name {e}") from None
        return cls(Path(config.run.output) / name)

    def create(self, config: Config) -> None:
        """Make and lock the folder of a new run.

        Raises `ConfigError` if a run of this name exists or the folder cannot be written, and
        `FolderInUse` if another process begins a run of this name.
        """
        try:
            self._check_unused()
            self.lock.acquire()
            self._check_unused()  # another process may have begun and ended a run since
            (self.path / "evaluations").mkdir(parents=True, exist_ok=True)
            self._write("config.json", configs.to_dict(config))
            self._write("provenance.json", provenance(config.run.seed))
        except OSError as e:
            if isinstance(e, AgentGymsError):
                raise
            self.lock.discard()
            raise ConfigError(
                f"{path_end(self.path)} cannot be written: {e.strerror or e}; choose another "
                "folder with --set run.output=FOLDER"
            ) from e

    def keep(self, config: Config) -> None:
        """Write settings in the place of those that the run was created with."""
        self._write("config.json", configs.to_dict(config))

    def _check_unused(self) -> None:
        if (self.path / "config.json").exists():
            resumable = any(self.path.glob("checkpoints/step-*")) or self.warm_start.exists()
            remedy = f"resume it with --resume {self.path}" if resumable else f"delete {self.path}"
            raise ConfigError(
                f"{self.path} holds a run already: {remedy}, or choose another name with "
                "--set run.name=..."
            )

    def config(self) -> Config:
        """Return the configuration that the run was started with, or raise `CheckpointError`."""
        if not (self.path / "config.json").exists():
            raise CheckpointError(
                f"{self.path} is no run: it has no config.json; give a run's folder"
            )
        values = self._read("config.json")
        lacking = [name for name in _SECTIONS if name not in values]
        if lacking:
            raise CheckpointError(
                f"{self.path}/config.json is damaged: it lacks {', '.join(lacking)}"
            )
        try:
            return configs.from_dict(values)
        except ConfigError as e:
            raise CheckpointError(f"{self.path}/config.json is damaged: {e}") from None

    @property
    def warm_start(self) -> Path:
        """Folder of an interrupted warm start; see `harness.training.sft`."""
        return self.path / "warmstart"

    def rollouts(self, step: int) -> Path:
        """Return the file for the rollouts of a step; see `harness.rollouts.rollout_files`."""
        return self.path / "rollouts" / f"step-{step:06d}.jsonl.gz"

    def write_evaluation(self, step: int, record: Mapping[str, Any]) -> None:
        """Write an evaluation after `step`; `record` comes from `Evaluation.record`."""
        file = f"evaluations/step-{step:06d}-{record['split']}.json"
        self._write(file, {"step": step, **record})

    def has_trained(self) -> bool:
        """Return whether the run completed a training step."""
        return any(record["step"] > 0 for record in metrics.read(self.path))

    def validation(self, step: int, split: str) -> dict[str, float]:
        """Return success and score of a step's evaluation; empty if there was none."""
        name = f"evaluations/step-{step:06d}-{split}.json"
        if not (self.path / name).exists():
            return {}
        found = self._read(name)
        try:
            return {figure: float(found[figure]) for figure in ("success", "score")}
        except (KeyError, TypeError, ValueError, OverflowError) as e:
            raise CheckpointError(f"{self.path / name} is damaged: {e}") from None

    def how_to_resume(self, steps: int) -> str:
        """Return a message that says how to resume the run of `steps` from its last checkpoint."""
        saved = checkpoints.find_all(self.path)
        command = f"harness train --resume {shlex.quote(str(self.path))}"
        if not saved and self.warm_start.exists():
            return f"The warm start is saved; go on with: {command}"
        if not saved:
            return f"No step is saved yet; begin again with: {command}"
        return (
            f"Step {saved[-1].step} of {steps} is saved; go on with: {command} (its settings are "
            f"in {self.path / 'config.json'})"
        )

    def drop_after(self, step: int) -> set[tuple[int, str]]:
        """Remove evaluations and rollouts of steps after `step`, because those steps run again.

        Returns step and split of the evaluations that are kept.
        """
        kept = set()
        for kind in ("evaluations", "rollouts"):
            for file in sorted((self.path / kind).glob("*step-*")):
                found = _STEP.fullmatch(file.name)
                if file.name.endswith(".partial") or (found and int(found[1]) > step):
                    file.unlink(missing_ok=True)
                elif found and kind == "evaluations":
                    kept.add((int(found[1]), found[2]))
        return kept

    def evaluations(self) -> list[dict[str, Any]]:
        """Return all evaluations, by step."""
        files = sorted((self.path / "evaluations").glob("step-*.json"))
        return [self._read(f"evaluations/{file.name}") for file in files]

    def _write(self, name: str, value: Any) -> None:
        writing.write(self.path / name, json.dumps(value, indent=1, ensure_ascii=False) + "\n")

    def _read(self, name: str) -> Any:
        return read_object(self.path / name, CheckpointError)


def provenance(seed: int) -> dict[str, Any]:
    """Return versions, seed, time and machine, which are needed to repeat the run."""
    return {
        **versions(),
        "seed": seed,
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": platform.platform(),
    }
