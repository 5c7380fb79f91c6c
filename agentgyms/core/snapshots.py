"""Snapshots: an episode's state as JSON, the same on all machines; reading executes nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from agentgyms.core import keys, randomness, serialization
from agentgyms.core.arguments import check_options
from agentgyms.core.errors import BadRequest, BadSnapshot, ReplayMismatch
from agentgyms.core.outcome import Feedback, copy_observation, equal_observations

FORMAT: Final = "agentgyms-snapshot-1"
to_json = json.JSONEncoder(sort_keys=True, ensure_ascii=True, allow_nan=False).encode
"""Returns a value as JSON with sorted keys, equal for equal values."""

_TYPES: Final = {
    "seed": int,
    "options": dict,
    "actions": list,
    "terminated": bool,
    "truncated": bool,
}


class Last(NamedTuple):
    """The latest state of the episode as the environment returned it."""

    observation: Any
    info: dict[str, Any]
    terminated: bool = False
    truncated: bool = False

    @property
    def over(self) -> bool:
        """Whether the episode has ended."""
        return self.terminated or self.truncated

    def copy(self) -> Last:
        """Return a copy that shares no container and no array."""
        observation = copy_observation(self.observation)
        return Last(observation, copy_info(self.info), self.terminated, self.truncated)


@dataclass(slots=True)
class Episode:
    """Everything that determines an episode: replaying it leads to the same state."""

    seed: int
    options: dict[str, Any] = field(default_factory=dict)
    actions: list[str] = field(default_factory=list)
    last: Last = field(default_factory=lambda: Last("", {}))


class Saved(NamedTuple):
    """The content of a snapshot; `engine` is None if only a replay restores the state."""

    episode: Episode
    generator: np.random.Generator
    engine: Any


def pack(
    kind: Mapping[str, Any], episode: Episode, generator: np.random.Generator, engine: Any
) -> bytes:
    """Return the bytes of a snapshot; `kind` names the environment it can be restored in."""
    last = episode.last
    return to_json(
        {
            "format": FORMAT,
            "kind": kind,
            "seed": episode.seed,
            "options": episode.options,
            "actions": episode.actions,
            "observation": serialization.encode_observation(last.observation),
            "info": serialization.encode_info(last.info),
            "terminated": last.terminated,
            "truncated": last.truncated,
            "np_random": generator.bit_generator.state,
            "engine": engine,
        }
    ).encode()


def unpack(snapshot: bytes, kind: Mapping[str, Any] | None) -> Saved:
    """Return the content of a snapshot of `kind` (None: of any); raise `BadSnapshot` for others."""
    fields = _read(snapshot)
    if kind is not None and fields.get("kind") != json.loads(to_json(kind)):
        raise BadSnapshot(f"the snapshot is of {fields.get('kind')}, but this is {dict(kind)}")
    try:
        generator = randomness.from_state(fields["np_random"])
        episode = _episode(fields)
        _check_agreement(episode)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as e:
        raise BadSnapshot(f"the snapshot is damaged: {type(e).__name__}: {e}") from None
    return Saved(episode, generator, fields.get("engine"))


def _episode(fields: Mapping[str, Any]) -> Episode:
    for name, kind in _TYPES.items():
        if type(fields[name]) is not kind:
            given = type(fields[name]).__name__
            raise TypeError(f"{name!r} must be {kind.__name__}, got {given}")
    last = Last(
        serialization.decode_observation(fields["observation"]),
        serialization.decode_info(fields["info"]),
        fields["terminated"],
        fields["truncated"],
    )
    return Episode(fields["seed"], check_options(fields["options"]), fields["actions"], last)


def _check_agreement(episode: Episode) -> None:
    """Raise `ValueError` unless the parts of an episode fit together."""
    info = episode.last.info
    if episode.seed < 0:
        raise ValueError(f"the seed is negative: {episode.seed}")
    if any(type(action) is not str for action in episode.actions):
        raise ValueError("an action is not a string")
    Feedback(info["feedback"])
    if info["turn"] != len(episode.actions):
        raise ValueError(f"turn {info['turn']} after {len(episode.actions)} actions")
    if keys.observation_key(episode.last.observation) != info["observation_key"]:
        raise ValueError("the observation has another key than the info says")
    if episode.options.get("task_id", info["task_id"]) != info["task_id"]:
        raise ValueError(f"task {info['task_id']!r} where the options ask for another one")


def as_text(snapshot: bytes) -> str:
    """Return a snapshot in any Unicode encoding as text; raise `BadSnapshot` for other bytes."""
    _read(snapshot)
    # surrogatepass: an action may hold lone surrogates
    return bytes(snapshot).decode(json.detect_encoding(snapshot), "surrogatepass")


def with_generator(snapshot: bytes, generator: np.random.Generator) -> bytes:
    """Return the snapshot with `generator` as its `np_random`; `BadSnapshot` if it is none."""
    return to_json(_read(snapshot) | {"np_random": generator.bit_generator.state}).encode()


def with_options(snapshot: bytes, options: Mapping[str, Any]) -> bytes:
    """Return the snapshot with other options of its episode; `BadSnapshot` if it is none."""
    return to_json(_read(snapshot) | {"options": options}).encode()


def _read(snapshot: bytes) -> dict[str, Any]:
    if not isinstance(snapshot, bytes | bytearray):
        raise BadSnapshot(f"a snapshot is bytes, got {type(snapshot).__name__}")
    try:
        fields = serialization.loads(bytes(snapshot), "snapshot")
    except BadRequest as e:
        raise BadSnapshot(str(e)) from None
    if not isinstance(fields, dict) or fields.get("format") != FORMAT:
        raise BadSnapshot(f"these bytes are no snapshot of format {FORMAT}")
    return fields


def check_replayed(episode: Episode, observation: Any, state_key: str) -> None:
    """Raise `ReplayMismatch` unless a replay led to the episode's last observation and state."""
    expected = episode.last.info.get("state_key")
    if state_key != expected or not equal_observations(observation, episode.last.observation):
        raise ReplayMismatch(
            f"replaying seed {episode.seed} and {len(episode.actions)} actions reached state "
            f"{state_key}, the snapshot has {expected}: was it made by another version?"
        )


def copy_info(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return an `info` that shares no container with the given one."""
    copied = dict(info)
    copied["admissible_actions"] = list(info["admissible_actions"])
    copied["metrics"] = dict(info["metrics"])
    return copied
