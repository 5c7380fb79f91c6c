"""Several training runs, one after another; a repeated call goes on where the last one ended."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from harness import config as configs
from harness.config import Config
from harness.distributed.process_group import SINGLE_PROCESS, ProcessGroup
from harness.evaluation.folders import differences
from harness.preflight.checks import check
from harness.preflight.defaults import resolve
from harness.runs import checkpoints
from harness.runs.runfolder import RunFolder
from harness.training.series.jobs import Child, run_children, train_one
from harness.types.errors import ConfigError

NEW: Final = "new"
UNFINISHED: Final = "to resume"
FINISHED: Final = "finished"
_SHOWN: Final = 3


def state(config: Config) -> str:
    """Return `NEW`, `UNFINISHED` or `FINISHED`; raise `ConfigError` for a run of other settings."""
    folder = RunFolder.from_config(config)
    if not (folder.path / "config.json").exists():
        return NEW
    before = resolve(folder.config())
    # The run has written down what it took for its machine.
    policy, agent = config.policy, config.agent
    if policy.precision is None:
        policy = configs.replace(policy, precision=before.policy.precision)
    if agent.max_tokens is None:
        agent = configs.replace(agent, max_tokens=before.agent.max_tokens)
    now = resolve(configs.replace(config, policy=policy, agent=agent))
    changed = differences(_settings(before), _settings(now))
    if changed:
        remedy = "choose another name with --set run.name=..., or delete the folder"
        if len(changed) == 1 and changed[0].startswith("run.steps "):
            steps, path = config.run.steps, shlex.quote(str(folder.path))
            longer = f"train it to step {steps} with --resume {path} --set run.steps={steps}"
            remedy = f"{longer}, {remedy}"
        told = "; ".join(changed[:_SHOWN])
        raise ConfigError(f"{folder.path} holds a run with other settings: {told}; {remedy}")
    saved = checkpoints.find_all(folder.path)
    return FINISHED if saved and saved[-1].step >= config.run.steps else UNFINISHED


def _settings(config: Config) -> dict[str, Any]:
    kept = _without_seed(config)
    return {**kept, "run": {**kept["run"], "seed": config.run.seed}}


def _without_seed(config: Config) -> dict[str, Any]:
    kept: dict[str, Any] = json.loads(json.dumps(configs.without_seed(configs.to_dict(config))))
    return kept


def check_all(runs: Sequence[Config]) -> list[str]:
    """Check runs' settings and folders and return their states; `ConfigError` if one is wrong."""
    states = [state(config) for config in runs]
    for equal in kinds(runs):
        check(resolve(equal[0]))
    return states


def kinds(runs: Sequence[Config]) -> list[list[Config]]:
    """Return the runs in lists whose members differ only in the seed."""
    found: dict[str, list[Config]] = {}
    for config in runs:
        found.setdefault(configs.digest_values(_without_seed(config)), []).append(config)
    return list(found.values())


def train_all(
    runs: Sequence[Config],
    processes: ProcessGroup = SINGLE_PROCESS,
    announce: Callable[[str], None] = print,
    jobs: int = 1,
    on_finish: Callable[[Sequence[Path]], None] = lambda _: None,
) -> list[Path]:
    """Train all runs and return their folders; finished runs are skipped, unfinished ones resumed.

    Everything is checked before the first run starts. `announce` gets each run's description,
    `on_finish` the folders of the finished runs after each of them but the last. With several
    `jobs` so many processes train a run each. Raises `ConfigError` (nothing was written), and the
    errors of `Trainer.run`, after which no run starts.
    """
    states = processes.run_on_first(lambda: check_all(runs))
    folders = [RunFolder.from_config(config).path for config in runs]
    numbered = list(enumerate(zip(runs, folders, states, strict=True), 1))
    finished = {path for _, (_, path, was) in numbered if was == FINISHED}

    def ended(path: Path) -> None:
        finished.add(path)
        if len(finished) < len(runs):
            on_finish([one for one in folders if one in finished])

    children: list[Child] = []
    for number, (config, path, was) in numbered:
        line = f"run {number} of {len(runs)}: {path} ({was})"
        if jobs > 1 and was != FINISHED:
            children.append(Child(config, path, was == UNFINISHED, line))
            continue
        announce(line)
        if was != FINISHED:
            train_one(config, path, was == UNFINISHED, processes, announce)
            ended(path)
    run_children(children, jobs, announce, ended)
    return folders
