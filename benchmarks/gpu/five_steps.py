"""Five steps of GiGPO on ALFWorld: warm start, rollouts, updates, checkpoint, resume."""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from gpu.subjects import Sizes, Subject
from harness import config as configs
from harness.runs import checkpoints, metrics
from harness.training import setup

STEPS = 5


def five_steps(subject: Subject, sizes: Sizes, device: str) -> dict[str, Any]:
    """Return the figures of a run of the recipe `alfworld-tiny` with this model.

    When it has ended its last checkpoint is deleted, and the run goes on from the one before.

    Returns:
        `step_s`, seconds of a step; `tokens_per_s` and `memory_bytes` by phase; `checkpoint_bytes`,
        `save_s` and `resume_s`, until training goes on; `differing`: figures of the repeated steps
        that are not the same, those of time and memory left out.
    """
    with tempfile.TemporaryDirectory() as name:
        policy = subject.policy(sizes, device, "float32")
        policy.save(Path(name) / "model")
        del policy
        config = _config(sizes, Path(name), device)
        setup.start(config).run()
        run = Path(name) / "run"
        before = metrics.read(run)
        last = checkpoints.find_all(run)[-1].folder
        size = sum(path.stat().st_size for path in last.rglob("*") if path.is_file())
        shutil.rmtree(last)
        start = time.perf_counter()
        trainer = setup.resume(run)
        resume_s, resumed_from = time.perf_counter() - start, trainer.step
        trainer.run()
        after = metrics.read(run)
    return _steps(before) | {
        "checkpoint_bytes": size,
        "resume_s": resume_s,
        "repeated_steps": STEPS - resumed_from,
        "differing": _differing(before, after),
    }


def _config(sizes: Sizes, folder: Path, device: str) -> configs.Config:
    changes = [
        f"run.output='{folder}'",
        "run.name=run",
        f"run.steps={STEPS}",
        f"policy.model='{folder / 'model'}'",
        f"policy.device={device}",
        "policy.gradient_checkpointing=true",
        f"env.max_turns={sizes.turns}",
        f"rollout.tasks_per_step={sizes.groups}",
        f"rollout.group_size={sizes.members}",
        "optimizer.learning_rate=1e-5",
        f"warmstart.episodes={sizes.warm_episodes}",
        f"warmstart.steps={sizes.warm_steps}",
        f"warmstart.learning_rate={sizes.warm_rate}",
        "checkpoint.every=2",
        "checkpoint.keep=2",
        "eval.every=0",
        f"eval.tasks={sizes.groups}",
        "eval.final_splits=[]",
        "log.outputs=['pictures']",
    ]
    return configs.load("alfworld-tiny", changes)


def _steps(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Return medians over the training steps."""
    steps = [record for record in records if "update/loss" in record]

    def median(name: str) -> float | None:
        return statistics.median([one[name] for one in steps if name in one] or [float("nan")])

    phases = {"rollouts": "collect", "update": "update"}
    names = {name: f"memory/{phase}_allocated_gib" for name, phase in phases.items()}
    return {
        "step_s": median("time/step_s"),
        "save_s": median("time/save_s"),
        "tokens_per_s": {n: median(f"time/{p}_tokens_per_s") for n, p in phases.items()},
        "memory_bytes": {
            n: [one[key] * 2**30 for one in steps if key in one] for n, key in names.items()
        },
        "success": [record["rollout/success"] for record in steps],
        "tokens_learned": sum(record["update/model_tokens"] for record in steps),
    }


def _differing(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the figures that differ, with both values."""
    found = {}
    assert len(before) == len(after), (len(before), len(after))
    for one, other in zip(before, after, strict=True):
        for name in one.keys() | other.keys():
            if not name.startswith(metrics.MACHINE_SECTIONS) and one.get(name) != other.get(name):
                found[f"{one['step']}: {name}"] = [one.get(name), other.get(name)]
    return found
