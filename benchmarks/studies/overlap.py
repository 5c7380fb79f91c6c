"""Idle time of generator and learner: `rollout.ahead` 0, 1 and `"partial"`.

The trainer, the collector and the weight sync are the real ones, on the corridor with a tiny policy
behind a server of vLLM's protocol. What takes time is a model of a 7B's: each answer sleeps for its
tokens at a rate, each update for a stated time, both `--scale` times shortened.

    python benchmarks/studies/overlap.py
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import numpy as np
import policy_server

from harness import config as configs
from harness.model.policy import Policy
from harness.runs import checkpoints, metrics
from harness.training import setup

RATE: Final = 40.0
"""Tokens per second of each of 16 requests: about half of what Qwen2.5-7B's speed page has for one
alone on an A100 (77.7, bfloat16, vLLM, a prompt of 14,336 tokens). An assumption."""
MEDIAN: Final = 200.0
SIGMA: Final = 1.0
"""Of the log-normal lengths of answers in tokens, an assumption: the longest of 100 have ten times
the median."""
MOST: Final = 4096
REGIMES: Final = {"balanced": 1.0, "generation dominates": 1 / 9}
"""Seconds of an update for each second of generation without overlap. Generation is half of a step,
or 90 % of it as APRIL says of reasoning (arXiv:2509.18521; RollPacker, arXiv:2509.21009: 70 %)."""
SETTINGS: Final = {
    "ahead = 0": ["rollout.ahead=0"],
    "ahead = 1": ["rollout.ahead=1"],
    "ahead = partial": ["rollout.ahead=partial"],
}
TASKS: Final = 4
SIZE: Final = 4


def seconds_of(seed: int) -> float:
    """Return how long the answer with a seed takes a 7B."""
    drawn = np.random.default_rng([seed % 2**63, 7]).standard_normal()
    return min(MEDIAN * math.exp(SIGMA * drawn), MOST) / RATE


def run_of(home: Path, name: str, more: Sequence[str]) -> configs.Config:
    """Return a run on the corridor."""
    own = [
        f"run.output='{home}'",
        f"run.name='{name}'",
        "run.threads=1",
        "log.outputs=['tensorboard']",
        "policy.tiny={layers=1, hidden=32, heads=4, feed_forward=32}",
        "env.max_turns=8",
        f"rollout.tasks_per_step={TASKS}",
        f"rollout.group_size={SIZE}",
        f"rollout.max_live={TASKS * SIZE}",
        "optimizer.mini_batches=1",
        "eval.every=0",
        "eval.tasks=1",
        "eval.max_turns=1",
        "checkpoint.every=1000",
    ]
    return configs.load("corridor-tiny", [*own, *more])


def policy_of(home: Path) -> Path:
    """Return the folder of a policy that plays the corridor, but not well."""
    trainer = setup.start(run_of(home, "start", ["warmstart.steps=20"]))
    trainer.save()
    trainer.close()
    return checkpoints.find_all(trainer.folder.path)[0].folder


def measured(
    home: Path,
    policy: Path,
    name: str,
    more: Sequence[str],
    steps: int,
    scale: float,
    update: float,
) -> dict[str, float]:
    """Return means over the steps of a run, in seconds of the 7B.

    Args:
        home: Gets the run's folder.
        policy: Folder of the policy.
        name: Of the run.
        more: Its settings.
        steps: Its number of steps; the first and last are not counted.
        scale: Seconds of the 7B that are a second here.
        update: Seconds of the 7B that an update takes.
    """

    def pace(seed: int) -> float:
        return seconds_of(seed) / scale

    with policy_server.serving(Policy.load(str(policy), "cpu"), pace) as (url, _):
        served = [
            f"policy.model='{policy}'",
            "warmstart.episodes=0",
            "rollout.backend='server'",
            f"rollout.urls=['{url}']",
            f"run.steps={steps}",
        ]
        trainer = setup.start(run_of(home, name, [*served, *more]))
        learn = trainer.learner.update

        def timed(*given: Any, **named: Any) -> dict[str, float]:
            begin = time.perf_counter()
            figures = learn(*given, **named)
            time.sleep(max(update / scale - (time.perf_counter() - begin), 0.0))
            return figures

        trainer.learner.update = timed  # type: ignore[method-assign]
        trainer.run()
    records = [one for one in metrics.read(trainer.folder.path) if "update/loss" in one][1:-1]
    return {
        key: fmean(one[key] for one in records) * factor for key, factor in _keys(records[0], scale)
    }


def _keys(record: dict[str, Any], scale: float) -> list[tuple[str, float]]:
    """Return the names of figures and what makes each one of the 7B."""
    own = ["time/step_s", "time/collect_s", "time/generator_idle_s", "time/learner_idle_s"]
    shares = ["time/overlap_share", "rollout/stale_share", "rollout/staleness_max", "rollout/turns"]
    return [(key, scale) for key in own if key in record] + [
        (key, 1.0) for key in shares if key in record
    ]


def row_of(found: dict[str, float], first: float) -> list[str]:
    """Return the cells of a run's row.

    Args:
        found: Its figures.
        first: Seconds of a step without overlap.
    """
    step, played = found["time/step_s"], found["time/collect_s"]
    generator = found.get("time/generator_idle_s", step - played)
    learner = found.get("time/learner_idle_s", played)
    return [
        f"{step:.0f} s",
        f"{first / step:.2f}",
        f"{generator / step:.0%}",
        f"{learner / step:.0%}",
        f"{found.get('time/overlap_share', 0.0):.0%}",
        f"{found.get('rollout/stale_share', 0.0):.0%}",
        f"{found.get('rollout/staleness_max', 0.0):.0f}",
    ]


def main() -> None:
    """Print a table of both regimes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=7)
    parser.add_argument("--scale", type=float, default=15.0)
    given = parser.parse_args()
    titles = ["setting", "a step", "speed", "generator idle", "learner idle"]
    titles += ["both at work", "stale turns", "stalest, in steps"]
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        policy = policy_of(home)
        base = measured(home, policy, "base", SETTINGS["ahead = 0"], given.steps, given.scale, 0.0)
        for regime, share in REGIMES.items():
            update = share * base["time/collect_s"]
            print(f"\n{regime}: an update of {update:.0f} s\n\n| {' | '.join(titles)} |")
            print("|---" * len(titles) + "|")
            first = 0.0
            for number, (name, more) in enumerate(SETTINGS.items()):
                run = f"{regime[:3]}-{number}"
                found = measured(home, policy, run, more, given.steps, given.scale, update)
                first = first or found["time/step_s"]
                print(f"| {name} | {' | '.join(row_of(found, first))} |", flush=True)


if __name__ == "__main__":
    main()
