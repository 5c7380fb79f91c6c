"""Trains a recipe with verl: prepares the run's folder, starts verl, and says how it ended."""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from agentgyms.core import imports
from agentgyms.data import writing
from harness.config import TINY_MODELS, Config
from harness.model.weights import converted
from harness.preflight.defaults import resolve
from harness.runs.runfolder import RunFolder
from harness.training.verl.settings import ENDED, translate
from harness.types.errors import ConfigError, TrainingError
from harness.types.json_files import read_object

SETTINGS: Final = "verl.json"
"""File of verl's settings in the folder of a run that verl trains."""
_PLUGIN: Final = "harness.training.verl.plugin"


def start(config: Config, further: Mapping[str, Any]) -> Path:
    """Train a recipe with verl in a child process and return the run's folder.

    This harness makes the policy's warm start, or the tiny model, from which verl begins. `further`
    has settings of verl by dotted names, such as `trainer.n_gpus_per_node`. Raises `ConfigError` if
    verl is missing, the recipe has what verl cannot do, or the run exists; `TrainingError` if verl
    fails.
    """
    from harness.training.verl.recipe import write_tasks

    _check_installed()
    settings = translate(config)
    config = resolve(config, "cuda")
    folder = RunFolder.from_config(config)
    is_made = config.policy.model in TINY_MODELS or config.warmstart.episodes > 0
    model = _begun(config) if is_made else converted.folder_of(config.policy.model)
    if not is_made:
        folder.create(config)
        folder.lock.release()
    own = folder.path.resolve()
    (own / "verl").mkdir(parents=True, exist_ok=True)
    settings |= _places(own, model) | write_tasks(config, own / "verl") | dict(further)
    writing.write(own / SETTINGS, json.dumps(settings, indent=1))
    return resume(own)


def resume(folder: Path) -> Path:
    """Go on with a run from verl's newest checkpoint, or begin it; errors as in `start`."""
    _check_installed()
    settings = read_object(folder / SETTINGS, ConfigError)
    modules = [os.environ.get("VERL_USE_EXTERNAL_MODULES", ""), _PLUGIN]
    environment = {
        **os.environ,
        "VERL_USE_EXTERNAL_MODULES": ",".join(filter(None, modules)),
        "TOKENIZERS_PARALLELISM": "false",
    }
    words = [f"++{name}={literal(value)}" for name, value in settings.items()]
    ended = folder / "verl" / ENDED
    ended.unlink(missing_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", "verl.trainer.main_ppo", *words], env=environment, check=False
    )
    if done.returncode:
        why = ended.read_text(encoding="utf-8") if ended.is_file() else "see its output above"
        raise TrainingError(
            f"verl ended with status {done.returncode}: {why}. What it saved is in "
            f"{folder / 'verl'}, and `harness train --resume {shlex.quote(str(folder))}` goes on "
            "from there"
        )
    return folder


def is_verls(folder: Path) -> bool:
    """Return whether verl trains the run in a folder."""
    return (folder / SETTINGS).is_file()


def literal(value: Any) -> str:
    """Return a value as a command line of Hydra has it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        inside = ",".join(f"{name}:{literal(one)}" for name, one in value.items())
        return f"{{{inside}}}"
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(literal, value))}]"
    if isinstance(value, (int, float)):
        return repr(value)
    text = str(value).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{text}'"


def _check_installed() -> None:
    if importlib.util.find_spec("verl") is None:
        raise ConfigError(imports.missing("verl", "harness,verl"))


def _begun(config: Config) -> Path:
    """Begin a run with this harness, and return the folder of the model that verl starts with."""
    from harness.training import setup

    trainer = setup.start(config)
    model = trainer.folder.path.resolve() / "verl" / "start"
    trainer.policy.save(model, merged=True)
    trainer.folder.lock.release()
    return model


def _places(folder: Path, model: Path | str) -> dict[str, Any]:
    return {
        "actor_rollout_ref.model.path": str(model),
        "actor_rollout_ref.actor.checkpoint.save_contents": [
            *("model", "optimizer", "extra", "hf_model"),
        ],
        "trainer.default_local_dir": str(folder / "verl"),
        "trainer.experiment_name": folder.name,
        "agentgyms.recipe": str(folder / "config.json"),
    }
