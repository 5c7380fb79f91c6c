"""The result of an evaluation: `result.json`, counted from its recordings alone."""

from __future__ import annotations

import json
import platform
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from agentgyms.core.arguments import CONNECTION_ARGUMENTS
from agentgyms.data import writing
from agentgyms.data.manifests import digest_file
from harness.config import SEARCHES, EvaluationConfig, digest_values, to_dict
from harness.evaluation import episodes, figures
from harness.evaluation.episode_store import RECORDINGS, UnitKey
from harness.runs.versions import versions
from harness.types.errors import ResultError
from harness.types.json_files import read_object

FORMAT: Final = "agentgyms-evaluation-1"
CONFIG: Final = "config.json"
STARTED: Final = "started.json"
RESULT: Final = "result.json"
NOT_PLAYED: Final = "not played"
"""Error of a unit that is missing because the evaluation stopped before it was played."""

PROVENANCE: Final = "provenance.json"

_RUN: Final = ("name", "seeds", "tasks")
_SERVICE: Final = ("stream", "price_prompt", "price_response")
_PLACES: Final = ("url", "key_variable")
_ADDRESS: Final = re.compile(r"(?<=[^@\s])@https?://\S+$")
_SERVER_SETTINGS: Final = (
    *(*_PLACES, "timeout_s", "retries", "requests_per_minute", "tokens_per_minute"),
    *("cache", "cache_path"),
)


@dataclass(frozen=True, slots=True)
class LostUnit:
    """A unit that could not be finished: the trial that failed, and its error."""

    trial: int
    error: str


_LATER: Final = (
    ("model", "checkpoint", "newest"),
    ("agent", "tool_format", "auto"),
    ("agent", "thoughts", "keep"),
    ("agent", "scratchpad", 0),
    ("agent", "summary_tokens", 4096),
    ("agent", "max_thought_tokens", None),
    ("agent", "max_observation", None),
)
"""Settings that evaluations did not have at first; at these values they are left out, so that old
evaluations go on and are compared with new ones."""


def reproducible_settings(config: EvaluationConfig) -> dict[str, Any]:
    """Return the settings that results depend on, as plain JSON values.

    Addresses, rates and secrets are left out. Two evaluations with equal settings here, apart from
    their names, play the same episodes.
    """
    values: dict[str, Any] = json.loads(json.dumps(to_dict(config)))
    values["run"] = {key: values["run"][key] for key in _RUN}
    values["model"] = {k: v for k, v in values["model"].items() if k not in _PLACES}
    for section, key, default in _LATER:
        if values[section][key] in (default, None):
            del values[section][key]
    if config.agent.kind not in SEARCHES:
        del values["search"]
    values["service"] = {key: values["service"][key] for key in _SERVICE}
    values["env"]["kwargs"] = without_addresses(values["env"]["kwargs"])
    return values


def without_addresses(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return an environment's arguments without the addresses of it and of its models."""
    found: dict[str, Any] = {k: v for k, v in kwargs.items() if k not in CONNECTION_ARGUMENTS}
    for name, value in found.items():
        if isinstance(value, str):
            found[name] = _ADDRESS.sub("", value)
        elif isinstance(value, dict) and {"name", "url"} <= value.keys():  # a model at a server
            found[name] = {k: v for k, v in value.items() if k not in _SERVER_SETTINGS}
    return found


def digest(config: EvaluationConfig) -> str:
    """Return a hash of a configuration, equal for evaluations that play the same episodes."""
    values = reproducible_settings(config)
    del values["run"]["name"]
    return digest_values(values)


def config_to_json(config: EvaluationConfig) -> dict[str, Any]:
    """Return a configuration as `config.json` keeps it: all settings but a server's token."""
    values: dict[str, Any] = json.loads(json.dumps(to_dict(config)))
    values["env"]["kwargs"].pop("token", None)
    return values


def started_json(
    config: EvaluationConfig,
    tasks: Mapping[str, str],
    environment: Mapping[str, Any],
    parties: Mapping[str, str],
    data_source: str | None,
    prompt_versions: Mapping[str, str],
    model: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the content of `started.json`, which may not change until the evaluation ends.

    `tasks` maps ids to families, in order; `environment` has `max_turns` and `data_version`;
    `parties` are partner and judge; `data_source` is `TextEnv.data_source`; `model` is the model's
    identity.
    """
    plain = reproducible_settings(config)
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
        "data_source": data_source,
        "versions": versions(),
        "tasks": [[task_id, family] for task_id, family in tasks.items()],
    }


def write(
    folder: Path, started: Mapping[str, Any], lost: Mapping[UnitKey, LostUnit]
) -> dict[str, Any]:
    """Write and return `result.json` from sorted recordings; `lost` says why units are missing."""
    recordings = folder / RECORDINGS
    found = episodes.read(recordings)
    tasks, seeds = started["tasks"], started["seeds"]
    ended = {(episode.seed, episode.index) for episode in found}
    planned = [(seed, index) for seed in seeds for index in range(len(tasks))]
    missing = [key for key in planned if key not in ended]
    counted = figures.count(started, seeds, found)
    why = {key: lost.get(key) or LostUnit(1, NOT_PLAYED) for key in missing}
    result = {
        **{key: value for key, value in started.items() if key != "tasks"},
        "episodes": {"planned": len(planned), "finished": len(ended), "missing": len(missing)},
        "missing": [
            {"task_id": tasks[index][0], "seed": seed, "trial": one.trial, "error": one.error}
            for (seed, index), one in why.items()
        ],
        "figures": counted["figures"],
        "recordings": {"file": RECORDINGS, "sha256": digest_file(recordings)},
        "tasks": tasks,
        "outcomes": counted["outcomes"],
    }
    write_json(folder / RESULT, result)
    return result


def add_session(
    folder: Path, started_at: float, *, wall_s: float, finished: int, model: Mapping[str, Any]
) -> None:
    """Add a session, its time in s, to `provenance.json`; `finished` counts earlier ones too."""
    before = read_sessions(folder)
    started, ended = (
        time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at)) for at in (started_at, time.time())
    )
    session = {
        "started": started,
        "ended": ended,
        "wall_s": round(wall_s, 3),
        "finished": finished,
        "machine": platform.platform(),
        "versions": versions(),
        "model": dict(model),
    }
    write_json(folder / PROVENANCE, {"sessions": [*before, session]})


def read_sessions(folder: Path) -> list[Any]:
    """Return the earlier sessions of an evaluation."""
    path = folder / PROVENANCE
    sessions = read_json(path).get("sessions") if path.exists() else []
    if not isinstance(sessions, list):
        raise ResultError(f"{path} is damaged: sessions must be a list; delete the file")
    return sessions


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON object in one step, with one line for each item of its lists."""
    fields = []
    for key, inner in value.items():
        text = json.dumps(inner, indent=1, allow_nan=False).replace("\n", "\n ")
        if isinstance(inner, list) and inner:
            items = ",\n".join(f"  {json.dumps(item, allow_nan=False)}" for item in inner)
            text = f"[\n{items}\n ]"
        fields.append(f" {json.dumps(key)}: {text}")
    writing.write(path, "{\n" + ",\n".join(fields) + "\n}\n")


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file; raises `ResultError` if there is none."""
    return read_object(path, ResultError)
