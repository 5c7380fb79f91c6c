"""The folder of a run: what was asked for, what ran, and what came of it."""

from __future__ import annotations

import json
import platform
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness import config as configs
from harness import durable, metrics
from harness.config import Config
from harness.errors import CheckpointError, ConfigError
from harness.evaluate import Evaluation
from harness.versions import versions

_STEP: Final = re.compile(r"step-(\d+)-?(.*)\.jsonl?(?:\.gz)?")
"""A file of a step: its number, and the split of an evaluation."""


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Files of one run.

        config.json       the resolved configuration
        provenance.json   versions, git revision, seed, machine
        metrics.jsonl     one line per step and evaluation
        evaluations/      every episode of every evaluation
        rollouts/         rollouts of training steps, where `run.keep_rollouts` asks for them
        checkpoints/      to resume from; each is a model that transformers loads, and the link
                          `best` leads to the one that did best in validation
        reference/        the policy after the warm start, where something compares with it
        tensorboard/ wandb/ curve.png training.png table.md

    Attributes:
        path: The folder.
    """

    path: Path

    @classmethod
    def create(cls, config: Config) -> RunFolder:
        """Make the folder of a new run.

        Raises:
            ConfigError: A run of this name exists.
        """
        path = Path(config.run.output) / config.run.name
        if (path / "config.json").exists():
            resumable = any(path.glob("checkpoints/step-*"))
            remedy = f"resume it with --resume {path}" if resumable else f"delete {path}"
            raise ConfigError(
                f"{path} holds a run already: {remedy}, or choose another name with "
                "--set run.name=..."
            )
        (path / "evaluations").mkdir(parents=True, exist_ok=True)
        folder = cls(path)
        folder._write("config.json", configs.to_dict(config))
        folder._write("provenance.json", provenance(config.run.seed))
        return folder

    def config(self) -> Config:
        """Return the configuration the run was started with.

        Raises:
            CheckpointError: The folder is no run's, or its file is damaged.
        """
        try:
            return configs.from_dict(self._read("config.json"))
        except FileNotFoundError:
            raise CheckpointError(f"{self.path} is no run: it has no config.json") from None
        except ValueError as e:
            raise CheckpointError(f"{self.path}/config.json is damaged: {e}") from None

    def rollouts(self, step: int) -> Path:
        """Return the file for the rollouts of a step; see `harness.rollout_files`."""
        return self.path / "rollouts" / f"step-{step:06d}.jsonl.gz"

    def write_evaluation(self, step: int, evaluation: Evaluation) -> None:
        """Keep every episode of an evaluation."""
        self._write(
            f"evaluations/step-{step:06d}-{evaluation.split}.json",
            {
                "step": step,
                "split": evaluation.split,
                "parties": evaluation.parties,
                "success": evaluation.success.value,
                "interval": list(evaluation.success.interval),
                "score": evaluation.score,
                "score_interval": list(evaluation.score_interval),
                "families": {k: [r.successes, r.count] for k, r in evaluation.families.items()},
                "turns": evaluation.turns,
                "invalid_share": evaluation.invalid,
                "missing": evaluation.missing,
                "episodes": evaluation.episodes,
            },
        )

    def has_trained(self) -> bool:
        """Return whether a training step was completed here."""
        return any(record["step"] > 0 for record in metrics.read(self.path))

    def validation(self, step: int, split: str) -> dict[str, float]:
        """Return success and score of the evaluation of a step; nothing if there was none."""
        try:
            found = self._read(f"evaluations/step-{step:06d}-{split}.json")
        except FileNotFoundError:
            return {}
        return {name: float(found[name]) for name in ("success", "score")}

    def drop_after(self, step: int) -> set[tuple[int, str]]:
        """Remove evaluations and rollouts of later steps, which are run again.

        Returns:
            Step and split of the evaluations that are left.
        """
        left = set()
        for kind in ("evaluations", "rollouts"):
            for file in sorted((self.path / kind).glob("*step-*")):
                found = _STEP.fullmatch(file.name)
                if file.name.endswith(".partial") or (found and int(found[1]) > step):
                    file.unlink(missing_ok=True)
                elif found and kind == "evaluations":
                    left.add((int(found[1]), found[2]))
        return left

    def evaluations(self) -> list[dict[str, Any]]:
        """Return all evaluations, by step."""
        files = sorted((self.path / "evaluations").glob("step-*.json"))
        return [self._read(f"evaluations/{file.name}") for file in files]

    def _write(self, name: str, value: Any) -> None:
        text = json.dumps(value, indent=1, ensure_ascii=False)
        durable.write(self.path / name, text + "\n")

    def _read(self, name: str) -> Any:
        return json.loads((self.path / name).read_text(encoding="utf-8"))


def provenance(seed: int) -> dict[str, Any]:
    """Return what a reader needs to run the same thing again."""
    return {
        **versions(),
        "seed": seed,
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": platform.platform(),
    }
