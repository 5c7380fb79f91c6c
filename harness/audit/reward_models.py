"""Scores the turns of an audit by the process reward model of a training run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from harness.annotators import AnnotatorContext, registry
from harness.evaluation import run_checkpoints
from harness.model.policy import Policy
from harness.runs import training_state
from harness.types.arrays import Floats
from harness.types.errors import ConfigError
from harness.types.json_files import read_object
from harness.types.rollout import Rollout

_NAME: Final = "process_reward"
_CONFIG: Final = "config.json"


def settings(run: Path) -> dict[str, Any]:
    """Return the configuration of a run that trained a model which scores turns.

    Raises `ConfigError` if the folder is no run's, its annotators have no such model, or the model
    is compared with the policy before training, which checkpoints do not keep.
    """
    where = f"--process-reward {str(run)!r:.200}"
    if not (run / _CONFIG).is_file():
        raise ConfigError(f"{where} is no training run's folder: it has no {_CONFIG}")
    config = read_object(run / _CONFIG, ConfigError)
    trained = config.get("method", {}).get("annotators", {}).get(_NAME)
    if trained is None:
        raise ConfigError(f"{where} trained no process reward model: give a run of oprl")
    if trained.get("objective") == "ce":
        raise ConfigError(
            f"{where} compares its model with the policy before training, which its checkpoints do "
            "not keep (objective 'ce'): give a run of oprl"
        )
    return config


def process_rewards(
    run: Path, policy: Policy, rollouts: Sequence[Rollout], temperature: float
) -> Floats:
    """Return beta * (log pi_phi - log pi) of each turn, shape [N]; the newest checkpoint is pi_phi.

    `policy` is pi, the sampler of the rollouts' tokens (OPRL, Eq. 1). Raises the errors of
    `settings`, `ConfigError` if the run has no whole checkpoint, and `CheckpointError` if its model
    is damaged or does not fit the policy.
    """
    config = settings(run)
    context = AnnotatorContext(policy, context=config["agent"]["context"], temperature=temperature)
    annotator = registry.make(_NAME, config["method"]["annotators"][_NAME], context)
    checkpoint = run_checkpoints.choose(run, run_checkpoints.NEWEST, config)
    training_state.read_annotator(checkpoint.folder, _NAME, annotator)
    found: Floats = annotator.scored(rollouts)
    return found
