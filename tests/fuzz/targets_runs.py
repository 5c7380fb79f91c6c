"""Targets: files of training runs and of evaluations' results."""

from __future__ import annotations

import hashlib
import json
import shutil
from functools import cache
from pathlib import Path
from typing import Any

from fuzz_target import scratch, target, written
from tqdm import tqdm

from agentgyms.core.errors import AgentGymsError, CallerError
from agentgyms.data.users_files import parse_json
from harness.config import load, to_dict
from harness.evaluation.episodes import EpisodeRecord
from harness.evaluation.figures import summarise
from harness.evaluation.folders import read_config
from harness.evaluation.results import read_json
from harness.reporting.leaderboard import boards, site
from harness.reporting.leaderboard import submissions as submitted
from harness.reporting.results import loading
from harness.reporting.tables import details, formats, rows
from harness.types.errors import CheckpointError, ConfigError, ResultError
from harness.types.rollout import StopReason, Usage


def _checkpoint_seeds() -> list[bytes]:
    digest = hashlib.sha256(b"weights").hexdigest()
    described = {"step": 3, "validation": {"success": 0.5}, "files": {"w.bin": [7, digest]}}
    return [json.dumps(described).encode(), b'{"step": 3, "files": {}}']


@target(CheckpointError, seeds=_checkpoint_seeds)
def checkpoints(data: bytes) -> Any:
    """A checkpoint's description names a whole checkpoint, or it is refused as damaged."""
    from harness.runs import checkpoints as kept

    run = scratch() / "run"
    written(b"weights", "run/checkpoints/step-000003/w.bin")
    written(data, "run/checkpoints/step-000003/checkpoint.json")
    found = kept.newest(run)
    ranked = kept.ranking(kept.find_all(run), "success")
    return found and (found.step, dict(found.validation)), len(ranked)


def _metric_seeds() -> list[bytes]:
    records: list[dict[str, Any]] = [{"step": 0, "eval/success": 0.5}, {"step": 1, "loss": None}]
    return ["".join(json.dumps(record) + "\n" for record in records).encode()]


@target(CheckpointError, seeds=_metric_seeds, kind="lines")
def metrics(data: bytes) -> Any:
    """A run's metrics are gone on with, or refused as damaged."""
    from harness.runs.metrics import MetricsLog

    file = written(data, "measured/metrics.jsonl")
    log = MetricsLog(file.parent, 1)
    return log.spent, file.read_bytes()


@cache
def _evaluation() -> dict[str, Any]:
    episode = {"task_id": "train/free-036", "family": "free", "success": True, "score": 1.0,
        "turns": 2, "seed": 0, "group": 0, "member": 0, "stop_reason": "terminated", "error": "",
        "metrics": {"a": 1.0}, "invalid_share": 0.5}  # fmt: skip
    return {
        "step": 1, "split": "valid", "success": 0.5, "score": 0.5, "turns": 2.0,
        "interval": [0.1, 0.9], "families": {"free": [1, 2]}, "parties": {},
        "invalid_share": 0.0, "episodes": [episode, episode | {"task_id": "b"}],
    }  # fmt: skip


def _run_seeds() -> list[bytes]:
    config = json.loads(json.dumps(to_dict(load("corridor-tiny"))))
    return [json.dumps({"config": config, "evaluation": _evaluation()}).encode()]


@target(AgentGymsError, seeds=_run_seeds, steps_per_byte=4_000)
def training_runs(data: bytes) -> Any:
    """A run's folder is read by a report and by a resumption, or refused."""
    from harness.runs.runfolder import RunFolder

    try:
        fields = json.loads(data)
        config, evaluation = fields["config"], fields["evaluation"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    folder = scratch() / "trained"
    written(json.dumps(config).encode(), "trained/config.json")
    written(json.dumps(evaluation).encode(), "trained/evaluations/step-000001-valid.json")
    found: list[Any] = []
    for read in (lambda: RunFolder(folder).config(), lambda: _loaded(folder)):
        try:
            found.append(read())
        except AgentGymsError as error:
            found.append(f"{type(error).__name__}: {error}")
    return found


def _loaded(path: Path) -> Any:
    """Return evaluations as a report loads and shows them."""
    loaded = loading.load_all([path])
    built = rows.build(loaded, with_reported=True)
    written_forms = (
        formats.tables_to_markdown(built),
        formats.to_latex(built),
        formats.to_csv(built),
    )
    return written_forms, [details.to_markdown(one) for one in loaded]


def _result_seeds() -> list[bytes]:
    records = [
        EpisodeRecord(f"t{index}", index, 0, 1, "free", won, float(won), 2, 0, 0, 0, 0,
            StopReason.TERMINATED, Usage(100, 10, 1), {})
        for index, won in enumerate((True, False, True))
    ]  # fmt: skip
    result = {
        "format": "agentgyms-evaluation-1",
        "config": {},
        "digest": "0" * 12,
        "environment": {"id": "agentgyms/Corridor-v0", "split": "valid", "kwargs": {},
            "max_turns": 50, "data_version": "1", "tasks": 3},
        "agent": {"kind": "react", "trials": 1, "prompt_versions": {}},
        "model": {"backend": "openai", "name": "org/Base-1B", "revision": None},
        "sampling": {"temperature": 0.4},
        "seeds": [0],
        "judge": None,
        "versions": {},
        "episodes": {"planned": 4, "finished": 3, "missing": 1},
        "missing": [{"task_id": "t3", "seed": 0, "trial": 1, "error": "not played"}],
        "figures": summarise(
            records, env_id="agentgyms/Corridor-v0", seeds=[0], trials=1, prices=None
        ),
        "recordings": {"file": "recordings.jsonl", "sha256": hashlib.sha256(b"").hexdigest()},
        "tasks": [[f"t{index}", "free"] for index in range(4)],
        "outcomes": [[r.index, r.seed, r.trial, r.success, r.score, r.turns] for r in records],
    }  # fmt: skip
    return [json.dumps(result).encode()]


@target(ResultError, AgentGymsError, seeds=_result_seeds, steps_per_byte=4_000)
def result_files(data: bytes) -> Any:
    """A result is shown in a report's tables, or refused as damaged."""
    return _loaded(written(data, "finished/result.json").parent)


@target(ResultError, seeds=lambda: [b'{"sessions": [{"wall_s": 1.0}]}'])
def json_files(data: bytes) -> Any:
    """A JSON file of an evaluation is an object, or refused as damaged."""
    return read_json(written(data, "some/provenance.json"))


def _eval_config_seeds() -> list[bytes]:
    from harness.config import EvaluationConfig

    return [json.dumps(EvaluationConfig().model_dump()).encode()]


@target(ResultError, ConfigError, CallerError, seeds=_eval_config_seeds)
def evaluation_configs(data: bytes) -> Any:
    """The settings that an evaluation was started with are read or refused."""
    file = written(data, "started/config.json")
    try:
        return read_config(file.parent)
    finally:
        shutil.rmtree(file.parent)


def _submission_seeds() -> list[bytes]:
    """Return an evaluation in one file: its result as the first line, then its recordings."""
    from harness.config import EvaluationConfig, build
    from harness.reporting import run_and_report

    values = {
        "run": {"output": str(scratch() / "submitted"), "tasks": 2, "name": "one"},
        "env": {"id": "agentgyms/Corridor-v0", "split": "sample", "max_turns": 3},
        "model": {"name": "random"},
    }
    folder = run_and_report.run(build(EvaluationConfig, values))
    result = json.dumps(read_json(folder / "result.json")).encode()
    return [result + b"\n" + (folder / "recordings.jsonl").read_bytes()]


@target(*site.DAMAGED, seeds=_submission_seeds, kind="lines", steps_per_byte=4_000)
def submissions(data: bytes) -> Any:
    """An evaluation of a leaderboard replays and is shown, or has a reason why not."""
    first, _, recordings = data.partition(b"\n")
    place = written(recordings, "submission/recordings.jsonl").parent
    result = parse_json(first)
    if isinstance(result, dict) and isinstance(result.get("recordings"), dict):
        result["recordings"]["sha256"] = hashlib.sha256(recordings).hexdigest()
    written(json.dumps(result).encode(), "submission/result.json")
    [found] = submitted.find(place)
    (scratch() / site.PAGES).mkdir(exist_ok=True)
    entry = site.verify(found, scratch(), {}, tqdm(total=0, disable=True))
    return site.render(site.Site(boards.build([entry]), []))
