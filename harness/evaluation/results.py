"""What an evaluation came to: `result.json`, counted from its recordings alone."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import platform
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from agentgyms.arguments import OF_CONNECTIONS
from harness import sections
from harness.errors import ResultError
from harness.evaluation import episodes, figures
from harness.evaluation.config import EvaluationConfig
from harness.evaluation.store import RECORDINGS, Place, replacing
from harness.versions import versions

FORMAT: Final = "agentgyms-evaluation-1"
CONFIG: Final = "config.json"
STARTED: Final = "started.json"
RESULT: Final = "result.json"
NOT_PLAYED: Final = "not played"
"""Error of what is missing because the evaluation stopped before."""

PROVENANCE: Final = "provenance.json"

_RUN: Final = ("name", "seeds", "tasks")
_SERVICE: Final = ("stream", "price_prompt", "price_response")
_PLACES: Final = ("url", "key_variable")
_ADDRESS: Final = re.compile(r"(?<=[^@\s])@https?://\S+$")
_OF_SERVERS: Final = (
    *_PLACES,
    "timeout_s",
    "retries",
    "requests_per_minute",
    "tokens_per_minute",
    "cache",
    "cache_path",
)


@dataclass(frozen=True, slots=True)
class Lost:
    """An episode that could not be finished: the trial it was at, and why."""

    trial: int
    error: str


def fixed(config: EvaluationConfig) -> dict[str, Any]:
    """Return what results depend on, JSON-plain: no addresses, no pace, no secrets.

    Two evaluations in which this is equal, their names aside, play the same episodes.
    """
    values: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(config)))
    values["run"] = {key: values["run"][key] for key in _RUN}
    values["model"] = {k: v for k, v in values["model"].items() if k not in _PLACES}
    values["service"] = {key: values["service"][key] for key in _SERVICE}
    values["env"]["kwargs"] = without_addresses(values["env"]["kwargs"])
    return values


def without_addresses(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return an environment's arguments without what only says where it and its models are."""
    return {k: _without_address(v) for k, v in kwargs.items() if k not in OF_CONNECTIONS}


def _without_address(value: Any) -> Any:
    """Return an argument that is a model behind a server without where and how fast it answers."""
    if isinstance(value, str):
        return _ADDRESS.sub("", value)
    if isinstance(value, dict) and {"name", "url"} <= value.keys():
        return {k: v for k, v in value.items() if k not in _OF_SERVERS}
    return value


def digest(config: EvaluationConfig) -> str:
    """Return what names a configuration: equal for evaluations that play the same episodes."""
    values = fixed(config)
    del values["run"]["name"]
    return sections.digest(values)


def written(config: EvaluationConfig) -> dict[str, Any]:
    """Return a configuration as its file keeps it: all of it but the token of a server."""
    values: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(config)))
    values["env"]["kwargs"].pop("token", None)
    return values


def started(
    config: EvaluationConfig,
    tasks: Mapping[str, str],
    environment: Mapping[str, Any],
    parties: Mapping[str, str],
    prompt_versions: Mapping[str, str],
    model: Mapping[str, Any],
) -> dict[str, Any]:
    """Return what an evaluation begins with, and may not change until it ends.

    Args:
        config: Resolved.
        tasks: Those that are played, in order, with their families.
        environment: Its `max_turns` and `data_version`.
        parties: Who else has a part in its episodes: a partner, a judge.
        prompt_versions: Hashes of the templates, by name.
        model: Its identity.
    """
    plain = fixed(config)
    return {
        "format": FORMAT,
        "config": plain,
        "digest": digest(config),
        "environment": {
            "id": config.env.id,
            "split": config.env.split,
            "kwargs": plain["env"]["kwargs"],
            **environment,
            "tasks": len(tasks),
        },
        "agent": {**plain["agent"], "prompt_versions": dict(sorted(prompt_versions.items()))},
        "model": dict(model),
        "sampling": plain["sampling"],
        "seeds": list(config.run.seeds),
        "partner": parties.get("partner"),
        "judge": parties.get("judge"),
        "versions": versions(),
        "tasks": [[task_id, family] for task_id, family in tasks.items()],
    }


def write(folder: Path, begun: Mapping[str, Any], lost: Mapping[Place, Lost]) -> dict[str, Any]:
    """Write `result.json` from the recordings of a folder, and return it.

    Args:
        folder: Whose recordings are in order.
        begun: What `started` returned when the evaluation began.
        lost: Why units are missing, by seed and index of the task; those that ended do not count.
    """
    recordings = folder / RECORDINGS
    found = episodes.read(recordings)
    tasks, seeds = begun["tasks"], begun["seeds"]
    ended = {(episode.seed, episode.index) for episode in found}
    planned = [(seed, index) for seed in seeds for index in range(len(tasks))]
    missing = [place for place in planned if place not in ended]
    service = begun["config"]["service"]
    prices = service["price_prompt"], service["price_response"]
    result = {
        **{key: value for key, value in begun.items() if key != "tasks"},
        "episodes": {"planned": len(planned), "finished": len(ended), "missing": len(missing)},
        "missing": [_missing(tasks[place[1]][0], place, lost.get(place)) for place in missing],
        "figures": figures.summarise(
            found,
            env_id=begun["environment"]["id"],
            seeds=seeds,
            trials=begun["agent"]["trials"],
            prices=None if None in prices else prices,
        ),
        "recordings": {"file": RECORDINGS, "sha256": _sha256(recordings)},
        "tasks": tasks,
        "outcomes": [[e.index, e.seed, e.trial, e.success, e.score, e.turns] for e in found],
    }
    write_json(folder / RESULT, result)
    return result


def _missing(task_id: str, place: Place, lost: Lost | None) -> dict[str, Any]:
    why = lost or Lost(1, NOT_PLAYED)
    return {"task_id": task_id, "seed": place[0], "trial": why.trial, "error": why.error}


def note(
    folder: Path, started_at: float, *, wall_s: float, finished: int, model: Mapping[str, Any]
) -> None:
    """Add a session to `provenance.json`: when and where it ran, and what was retried.

    Args:
        folder: Of the evaluation.
        started_at: When the session began, in seconds since 1970.
        wall_s: How long it took, whatever was done to the clock meanwhile.
        finished: Units that have ended, those of earlier sessions included.
        model: What the model's treatment was like.
    """
    path = folder / PROVENANCE
    before: Sequence[Any] = read_json(path)["sessions"] if path.exists() else ()
    session = {
        "started": _clock(started_at),
        "ended": _clock(time.time()),
        "wall_s": round(wall_s, 3),
        "finished": finished,
        "machine": platform.platform(),
        "versions": versions(),
        "model": dict(model),
    }
    write_json(path, {"sessions": [*before, session]})


def _clock(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON object in one step, with one line for each item of its lists."""
    fields = [f" {json.dumps(key)}: {_laid_out(inner)}" for key, inner in value.items()]
    with replacing(path) as file:
        file.write(("{\n" + ",\n".join(fields) + "\n}\n").encode())


def _laid_out(value: Any) -> str:
    if isinstance(value, list) and value:
        items = [f"  {json.dumps(item, allow_nan=False)}" for item in value]
        return "[\n" + ",\n".join(items) + "\n ]"
    return json.dumps(value, indent=1, allow_nan=False).replace("\n", "\n ")


def read_json(path: Path) -> Any:
    """Return the contents of a file of JSON.

    Raises:
        ResultError: It is missing or damaged.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as e:
        raise ResultError(f"{path} cannot be read: {e.strerror}; is this an evaluation?") from None
    except ValueError as e:
        raise ResultError(f"{path} is damaged: {e}") from None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
