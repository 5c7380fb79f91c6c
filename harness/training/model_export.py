"""A trained model as a folder for others: its files, a card, and what it was trained with."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from agentgyms.core.errors import not_written, path_end
from agentgyms.data import writing
from harness.evaluation import run_checkpoints
from harness.evaluation.model_source import TRAINING_RUN
from harness.model.policy import Policy
from harness.reporting import run_report
from harness.reporting.results import training_runs
from harness.reporting.results.agent_names import method_name
from harness.reporting.results.training_runs import TrainingRun
from harness.reporting.table import Table
from harness.runs import checkpoints, fsync
from harness.runs.checkpoints import Checkpoint
from harness.types.errors import ConfigError
from harness.types.json_files import read_object

_LEFT_OUT: Final = shutil.ignore_patterns("checkpoint.json", "trainer", "*.pt")
"""Files of a checkpoint that training alone needs."""


def write(
    run: Path, folder: Path, checkpoint: str = run_checkpoints.NEWEST, precision: str | None = None
) -> Checkpoint:
    """Write a checkpoint's model with its card to a new folder, whole or not at all.

    Args:
        run: Folder of the training run.
        folder: A folder that does not exist, or is empty.
        checkpoint: One of the run's; see `run_checkpoints.choose`.
        precision: `"bfloat16"` or `"float32"`, with adapters merged into the weights; None
            copies the files as they are.

    Raises:
        ConfigError: There is no such checkpoint, it is damaged, or the folder is in use.
        ResultError: `run` is no training run, is damaged, or has no evaluation yet.
        DataError: The folder cannot be written.
    """
    described = training_runs.read(run)
    chosen = run_checkpoints.choose(run, checkpoint, described.config)
    model, damage = checkpoints.model_of(chosen.folder), checkpoints.damage_of(chosen.folder)
    if damage:
        raise ConfigError(f"the checkpoint cannot be exported: {damage}")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} is in use: give the name of a new folder")
    partial = folder.with_name(f".{folder.name}.partial")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        if precision is None:
            shutil.copytree(model, partial, ignore=_LEFT_OUT)
        else:
            policy = Policy.load(str(model), "cpu", precision=precision, tested=False)
            policy.save(partial, merged=True)
        _describe(partial, described, chosen)
        fsync.flush_all(partial)
        writing.replace(partial, folder)
    except OSError as e:
        shutil.rmtree(partial, ignore_errors=True)
        raise not_written(folder, e) from e
    return chosen


def _describe(folder: Path, run: TrainingRun, checkpoint: Checkpoint) -> None:
    file = run.folder / "provenance.json"
    provenance = read_object(file, ConfigError) if file.is_file() else {}
    known = {"step": checkpoint.step, "config": run.config, "provenance": provenance}
    writing.write(folder / TRAINING_RUN, json.dumps(known, indent=1))
    writing.write(folder / "README.md", "\n".join(_card(run, checkpoint, provenance)))


def _card(run: TrainingRun, checkpoint: Checkpoint, provenance: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of the card, which begins with what the Hub reads."""
    model, method = str(run.config["policy"]["model"]), method_name(run.method)
    name = run.folder.resolve().name
    yield "---\nlibrary_name: transformers\npipeline_tag: text-generation"
    if not Path(model).exists() and model.count("/") == 1:
        yield f"base_model: {model}"
    yield f"tags: {json.dumps(['agentgyms', run.method])}\n---\n"
    yield f"# {name}\n"
    yield (
        f"{method} trained `{model}` for {checkpoint.step} steps on {run.world}, seed {run.seed}, "
        "with agentgyms.\n"
    )
    yield "## Evaluations\n"
    yield run_report.table(run.evaluations, run.world)
    yield "\nSuccess in %. This is the model after the step named above.\n"
    yield "## Playing it\n"
    split = run.splits[0]
    yield f"```bash\nharness eval --model FOLDER --env {run.env_id} --split {split}\n```\n"
    yield "## Training\n"
    facts = _facts(provenance)
    rows = [[k, v if isinstance(v, str) else json.dumps(v)] for k, v in facts]
    yield Table(["", ""], rows).markdown() if rows else ""
    yield f"\n```json\n{json.dumps(run.config, indent=1)}\n```\n"


def _facts(provenance: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield what the card tells of provenance: versions and the seed, not the machine."""
    for key in ("agentgyms", "revision", "python", "seed", "started"):
        if provenance.get(key) not in (None, ""):
            yield key, provenance[key]
    yield from ((k, v) for k, v in provenance.get("libraries", {}).items() if v)


def push(folder: Path, repository: str) -> str:
    """Upload an exported folder to the Hub and return its address; a failure is a `ConfigError`.

    The repository is made, private, if it is missing. The token is that of `HF_TOKEN` or of
    `hf auth login`; `HF_ENDPOINT` names another hub.
    """
    from huggingface_hub import HfApi

    api = HfApi()
    try:
        api.create_repo(repository, private=True, exist_ok=True)
        api.upload_folder(repo_id=repository, folder_path=folder, commit_message="Trained model")
    except Exception as e:  # its libraries raise errors of any kind
        words = " ".join(str(e).split()) or type(e).__name__
        raise ConfigError(
            f"{path_end(folder)} is written, and not uploaded to {repository:.80}: {words:.100}"
        ) from e
    return f"{api.endpoint}/{repository}"
