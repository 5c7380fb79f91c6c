"""Results to count and to show, made up where the numbers have to be known."""

import hashlib
import json
import math

from harness.evaluation.episodes import EpisodeRecord
from harness.evaluation.figures import summarise
from harness.evaluation.statistics import wilson
from harness.types.rollout import StopReason, Usage


def episode(task_id, success, *, index=0, seed=0, trial=1, family="", score=None, **more):
    """Return an episode of two turns and one call."""
    fields = {
        "turns": 2,
        "invalid": 0,
        "failed": 0,
        "unfinished": 0,
        "cut": 0,
        "stop_reason": StopReason.TERMINATED if success else StopReason.TURN_LIMIT,
        "usage": Usage(100, 10, 1),
        "metrics": {},
        **more,
    }
    score = float(success) if score is None else score
    return EpisodeRecord(task_id, index, seed, trial, family, success, score, **fields)


def episodes(wins, *, seed=0, family="", **more):
    """Return an episode of each task, by whether it was won."""
    return [
        episode(task_id, won, index=i, seed=seed, family=family, **more)
        for i, (task_id, won) in enumerate(wins.items())
    ]


def result(
    records,
    *,
    env_id="agentgyms/ALFWorld-v0",
    split="valid_seen",
    model="org/Base-1B",
    kind="react",
    seeds=(0,),
    trials=1,
    planned=None,
    data_version="made-1",
    data_source="official",
):
    """Return the `result.json` of episodes."""
    tasks = {r.index: [r.task_id, r.family] for r in sorted(records, key=lambda r: r.index)}
    ended = len({(r.seed, r.index) for r in records})
    planned = planned or ended
    lost = {"task_id": "t", "seed": 0, "trial": 1, "error": "ModelUnavailable: the server is gone"}
    return {
        "format": "agentgyms-evaluation-1",
        "config": {},
        "digest": "0" * 12,
        "environment": {
            "id": env_id,
            "split": split,
            "kwargs": {},
            "max_turns": 50,
            "data_version": data_version,
            "tasks": len(tasks),
        },
        "agent": {"kind": kind, "trials": trials, "prompt_versions": {}},
        "model": {"backend": "openai", "name": model, "revision": None},
        "sampling": {"temperature": 0.4},
        "seeds": list(seeds),
        "judge": None,
        "data_source": data_source,
        "versions": {},
        "episodes": {"planned": planned, "finished": ended, "missing": planned - ended},
        "missing": [lost] * (planned - ended),
        "figures": summarise(records, env_id=env_id, seeds=seeds, trials=trials, prices=None),
        "recordings": {"file": "recordings.jsonl", "sha256": hashlib.sha256(b"").hexdigest()},
        "tasks": [tasks[i] for i in sorted(tasks)],
        "outcomes": [[r.index, r.seed, r.trial, r.success, r.score, r.turns] for r in records],
    }


def keep(folder, content):
    """Write a result into a folder, and return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "result.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


def keep_run(folder, evaluations, *, seed=0, method="gigpo", model="org/Base-1B"):
    """Write the folder of a training run.

    Args:
        folder: Its place.
        evaluations: By step and split, whether each task was won.
    """
    (folder / "evaluations").mkdir(parents=True)
    config = {
        "run": {"name": folder.name, "seed": seed, "output": str(folder.parent)},
        "env": {"id": "agentgyms/ALFWorld-v0", "kwargs": {}},
        "policy": {"model": model},
        "agent": {"style": "think"},
        "method": {"name": method},
        "eval": {"split": "valid_seen"},
    }
    (folder / "config.json").write_text(json.dumps(config))
    for (step, split), wins in evaluations.items():
        name = f"step-{step:06d}-{split}.json"
        (folder / "evaluations" / name).write_text(json.dumps(_evaluation(step, split, wins)))
    return folder


def _evaluation(step, split, wins):
    families = {family: [0, 0] for family in ("heat", "pick")}
    for task_id, won in wins.items():
        families[task_id.partition("-")[0]][0] += won
        families[task_id.partition("-")[0]][1] += 1
    played = [
        {
            "task_id": task_id,
            "family": task_id.partition("-")[0],
            "success": won,
            "score": 1.0 if won else 0.5,
            "turns": 4,
            "stop_reason": "terminated" if won else "turn_limit",
            "error": "",
            "actions": [],
        }
        for task_id, won in wins.items()
    ]
    score = math.fsum(e["score"] for e in played) / len(played)
    lost = {"task_id": "pick-9", "family": "", "success": False, "score": 0.0, "turns": 0}
    return {
        "step": step,
        "split": split,
        "success": sum(wins.values()) / len(wins),
        "interval": [0.0, 1.0],
        "score": score,
        "score_interval": wilson(score, len(played)),
        "families": families,
        "turns": 4.0,
        "invalid_share": 0.25,
        "missing": 1,
        "episodes": [*played, {**lost, "stop_reason": "error", "error": "the server is gone"}],
    }


ALFWORLD = {"p1": ("pick", 1), "p2": ("pick", 0), "h1": ("heat", 1), "h2": ("heat", 1)}
WON = {"pick-1": True, "pick-2": False, "heat-1": True, "heat-2": True}
LOST = {"pick-1": False, "pick-2": False, "heat-1": False, "heat-2": True}


def alfworld(seeds=(0,), **more):
    """Return the result of four tasks of two families, three of them solved."""
    records = [
        episode(name, bool(won), index=i, seed=seed, family=family)
        for seed in seeds
        for i, (name, (family, won)) in enumerate(ALFWORLD.items())
    ]
    return result(records, seeds=seeds, **more)


def rows(text):
    """Return the cells of all lines of Markdown tables."""
    lines = [line.strip() for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line[1:-1].split(" | ")] for line in lines]
