"""Targets: files of episodes: recordings, rollouts, and those of an evaluation."""

from __future__ import annotations

import gzip
import io
import json
from functools import cache
from typing import Any

from fuzz_target import Broken, scratch, target, written
from targets_protocol import CORRIDOR, corridor

from agentgyms.core import serialization
from agentgyms.core.errors import AgentGymsError, DataCorrupt, DataMissing
from agentgyms.recording import recording_format
from agentgyms.recording.recorder import make_header
from agentgyms.recording.recording_format import RecordedTurn, Recording
from harness.evaluation import episodes
from harness.evaluation.episode_store import RECORDINGS, Store, recording_lines
from harness.rollouts import rollout_files
from harness.types.errors import HarnessError, TableError
from harness.types.rollout import StopReason

AGENT = {"prompt": "p", "tokens": [5, 2], "valid": True, "finished": True, "left_out": 0}


@cache
def _recordings() -> tuple[Recording, ...]:
    """Return two short episodes as an evaluation records them."""
    found = []
    for index in (0, 1):
        env = corridor(max_turns=3)
        observation, info = env.reset(seed=index)
        header = make_header(CORRIDOR, env, index, {})
        header["provenance"] = {"agentgyms": "0", "revision": ""}
        recording = Recording(header, [RecordedTurn(0, "", observation, 0.0, False, False, info)])
        ended = False
        while not ended:
            observation, reward, terminated, truncated, info = env.step("right")
            ended = terminated or truncated
            recording.turns.append(
                RecordedTurn(info["turn"], "right", observation, float(reward), terminated,
                    truncated, info, AGENT)
            )  # fmt: skip
        episodes.describe_episode(
            recording, index=index, seed=0, trial=1, stop_reason=StopReason.TURN_LIMIT,
            reflection={"prompt": "p", "answer": "a", "tokens": [1, 1]},
        )  # fmt: skip
        found.append(recording)
    return tuple(found)


def _recording_seeds() -> list[bytes]:
    return ["".join(map(recording_lines, _recordings())).encode()]


@target(DataCorrupt, DataMissing, seeds=_recording_seeds, kind="lines")
def recordings(data: bytes) -> Any:
    """Recordings that are read are written and read as the same lines."""
    found = recording_format.read(written(data, "recording.jsonl"))
    for recording in found:
        lines = [serialization.dumps(recording.header)]
        lines += map(recording_format.turn_line, recording.turns)
        [again] = recording_format.parse(lines, "again")
        if [recording_format.turn_line(turn) for turn in again.turns] != lines[1:]:
            raise Broken("a recording is not read as it was written")
    return [[recording_format.turn_line(turn) for turn in one.turns] for one in found]


@target(DataCorrupt, DataMissing, seeds=_recording_seeds, kind="lines")
def evaluation_episodes(data: bytes) -> Any:
    """Recordings of an evaluation are counted or refused."""
    return episodes.read(written(data, "counted.jsonl"))


@target(HarnessError, seeds=_recording_seeds, kind="lines")
def episode_store(data: bytes) -> Any:
    """An evaluation's file is gone on with, the same a second time, or is refused."""
    folder = scratch() / "evaluation"
    file = written(data, f"evaluation/{RECORDINGS}")
    store = Store(folder, 1)
    store.sort()
    left = file.read_bytes()
    again = Store(folder, 1)
    if (len(again), file.read_bytes()) != (len(store), left):
        raise Broken("what was dropped of a file is dropped again")
    return len(store), store.successes(), left


def _rollout_seeds() -> list[bytes]:
    file = written(_recording_seeds()[0], "played.jsonl")
    rollouts = rollout_files.read(file).rollouts
    made = scratch() / "made.jsonl"
    count = sum(len(rollout.turns) for rollout in rollouts)
    rollout_files.write(made, rollouts, {"value": [0.5] * count}, about={"step": 1})  # type: ignore[dict-item]
    foreign = {"task_id": "kitchen-1", "turns": [{"action": "open door", "reward": 0}] * 2}
    tokens = {"group": 0, "success": True, "turns": [{"action": "a", "reward": 1, "text": "a",
        "prompt_ids": [1, 2], "response_ids": [3], "logprobs": [-0.5], "usage": [2, 1, 1],
        "image": 0, "images": [0, None]}], "images": [{"png": _png()}]}  # fmt: skip
    lines = "\n".join(json.dumps(one) for one in (foreign, foreign)).encode()
    return [made.read_bytes(), file.read_bytes(), lines, json.dumps(tokens).encode()]


def _png() -> str:
    from targets_protocol import PICTURE

    return str(serialization.encode_part(PICTURE)["png"])


def _read_rollouts(name: str, data: bytes) -> Any:
    found = rollout_files.read(written(data, name))
    copy = scratch() / "copy.jsonl"
    try:
        rollout_files.write(copy, found.rollouts, found.columns)
    except TableError as error:
        raise Broken(f"what was read cannot be written: {error}") from error
    if found.rollouts:
        again = rollout_files.read(copy)
        rollout_files.write(scratch() / "second.jsonl", again.rollouts, again.columns)
        if (scratch() / "second.jsonl").read_bytes() != copy.read_bytes():
            raise Broken("rollouts are not read as they were written")
    return copy.read_bytes()


@target(AgentGymsError, seeds=_rollout_seeds, kind="lines", steps_per_byte=4_000)
def rollouts(data: bytes) -> Any:
    """Rollouts that are read are written and read as the same."""
    return _read_rollouts("rollouts.jsonl", data)


def _packed(data: bytes) -> bytes:
    file = io.BytesIO()
    with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
        packed.write(data)
    return file.getvalue()


@target(
    AgentGymsError,
    seeds=lambda: [_packed(seed) for seed in _rollout_seeds()],
    kind="bytes",
    steps_per_byte=8_000,
)
def packed_rollouts(data: bytes) -> Any:
    """Compressed rollouts are read or refused."""
    return _read_rollouts("rollouts.jsonl.gz", data)
