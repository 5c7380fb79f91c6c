"""A trained model for others: a folder with a card and what it was trained with, or a GGUF file."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from agentgyms.core.errors import AgentGymsError, not_written, path_end
from agentgyms.data import writing
from agentgyms.data.progress_bar import working
from harness.evaluation import model_source, run_checkpoints
from harness.model.policy import Policy
from harness.model.weights import converted
from harness.model.weights.converted.gguf_writer import Original
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

_FILE: Final = "model.gguf"
_MOST_RUNS: Final = 100
"""The most runs that go on from each other."""


def write(
    run: Path,
    target: Path,
    checkpoint: str = run_checkpoints.NEWEST,
    precision: str | None = None,
    like: Path | None = None,
) -> Checkpoint:
    """Write a checkpoint's model to a new folder with its card, or to a new GGUF file.

    It is written whole or not at all.

    Args:
        run: Folder of the training run.
        target: A folder that does not exist, or is empty; a file whose name ends with `.gguf`.
        checkpoint: One of the run's; see `run_checkpoints.choose`.
        precision: `"bfloat16"` or `"float32"`, with adapters merged into the weights; None
            copies the files as they are, and is float32 in a GGUF file.
        like: A GGUF file of the model before training, whose header a new one gets; None for that
            which the run began with.

    Raises:
        ConfigError: There is no such checkpoint, it is damaged, the target is in use, or there is
            no GGUF file with a header for it.
        ResultError: `run` is no training run, is damaged, or has no evaluation yet.
        DataError: The target cannot be written.
    """
    described = training_runs.read(run)
    chosen = run_checkpoints.choose(run, checkpoint, described.config)
    model, damage = checkpoints.model_of(chosen.folder), checkpoints.damage_of(chosen.folder)
    if damage:
        raise ConfigError(f"the checkpoint cannot be exported: {damage}")
    is_file = target.suffix.lower() == converted.GGUF
    if like is not None and not is_file:
        raise ConfigError(f"--like is for a GGUF file: give {target.name:.80}{converted.GGUF}")
    if target.exists() and (is_file or not target.is_dir() or any(target.iterdir())):
        raise ConfigError(f"{target} is in use: give another name")
    partial = target.with_name(f".{target.name}.partial")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        with working(f"writing {target.name}"):
            if is_file:
                original = Original(like or _began_with(described))
                about = {
                    "general.name": run.resolve().name,
                    "general.description": _summary(described, chosen),
                    converted.TRAINING_FIELD: json.dumps(_known(described, chosen)),
                }
                _write_file(model, partial, original, precision or "float32", about)
                writing.replace(partial / _FILE, target)
            else:
                _write_folder(model, partial, precision)
                _describe(partial, described, chosen)
                fsync.flush_all(partial)
                writing.replace(partial, target)
    except OSError as e:
        if isinstance(e, AgentGymsError):
            raise
        raise not_written(target, e) from e
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return chosen


def _write_folder(model: Path, folder: Path, precision: str | None) -> None:
    if precision is None:
        shutil.copytree(model, folder, ignore=_LEFT_OUT)
        return
    policy = Policy.load(str(model), "cpu", precision=precision, tested=False)
    policy.save(folder, merged=True)


def _write_file(
    model: Path, folder: Path, original: Original, precision: str, about: Mapping[str, str]
) -> None:
    policy = Policy.load(str(model), "cpu", precision=precision, tested=False)
    policy.save(folder, merged=True)
    file, tokenizer = folder / _FILE, policy.tokenizer
    original.write_trained(folder, file, tokenizer=tokenizer, precision=precision, about=about)
    writing.flush(file)


def _began_with(run: TrainingRun) -> Path:
    """Return the GGUF file with which a run began, or the run before it whose model it took."""
    name = first = str(run.config["policy"]["model"])
    for _ in range(_MOST_RUNS):
        if converted.is_converted(name):
            return converted.check_source(name, "policy.model")
        trained = model_source.find(name).trained if Path(name).is_dir() else None
        if trained is None:
            break
        name = str(trained["policy"]["model"])
    raise ConfigError(
        f"the run began with {first!r:.80}, no GGUF file, whose header a new one needs: give one "
        "of that model by --like, or export a folder, which llama.cpp's own converter takes"
    )


def _describe(folder: Path, run: TrainingRun, checkpoint: Checkpoint) -> None:
    known = _known(run, checkpoint)
    writing.write(folder / converted.TRAINING_RUN, json.dumps(known, indent=1))
    writing.write(folder / "README.md", "\n".join(_card(run, checkpoint, known["provenance"])))


def _known(run: TrainingRun, checkpoint: Checkpoint) -> dict[str, Any]:
    file = run.folder / "provenance.json"
    provenance = read_object(file, ConfigError) if file.is_file() else {}
    return {"step": checkpoint.step, "config": run.config, "provenance": provenance}


def _card(run: TrainingRun, checkpoint: Checkpoint, provenance: Mapping[str, Any]) -> Iterator[str]:
    model = str(run.config["policy"]["model"])
    yield "---\nlibrary_name: transformers\npipeline_tag: text-generation"
    if not Path(model).exists() and model.count("/") == 1:
        yield f"base_model: {model}"
    yield f"tags: {json.dumps(['agentgyms', run.method])}\n---\n"
    yield f"# {run.folder.resolve().name}\n"
    yield f"{_summary(run, checkpoint)}\n"
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


def _summary(run: TrainingRun, checkpoint: Checkpoint) -> str:
    return (
        f"{method_name(run.method)} trained `{run.config['policy']['model']}` for "
        f"{checkpoint.step} steps on {run.world}, seed {run.seed}, with agentgyms."
    )


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
