"""Records episodes turn by turn and replays them; for the format see `recording_format`."""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import gymnasium as gym

from agentgyms.core import serialization
from agentgyms.core.arguments import CONNECTION_ARGUMENTS
from agentgyms.core.env import Observation, TextEnv
from agentgyms.core.errors import BadOption, CallerError, ReplayMismatch, path_end
from agentgyms.core.imports import __version__
from agentgyms.core.outcome import equal_observations, shown
from agentgyms.data.writing import AppendedFile
from agentgyms.recording.recording_format import (
    BEGINNING,
    FORMAT,
    MOST_LINE,
    RecordedTurn,
    Recording,
    is_header,
    is_line,
    parse,
    read,
    turn_line,
)
from agentgyms.recording.untrusted import check_arguments, check_id
from agentgyms.registration import find_maker, make_text_env

__all__ = [
    "RecordEpisodes",
    "RecordedTurn",
    "Recording",
    "git_revision",
    "make_header",
    "parse",
    "read",
    "recorded_arguments",
    "replay",
    "replay_in",
    "turn_line",
]

_log = logging.getLogger(__name__)

COMPARED: Final = (
    "task_id",
    "state_key",
    "observation_key",
    "admissible_actions",
    "feedback",
    "success",
    "atoms",
)
"""Keys of `info` that a replay compares."""
OUTCOMES: Final = ("split", "family", "goal", "score", "progress", "metrics")
"""Further keys of `info` that a replay compares where a figure is counted from it."""


def make_header(
    env_id: str, env: TextEnv, seed: int, options: Mapping[str, Any], **extra: Any
) -> dict[str, Any]:
    """Return an episode's header; `extra` (such as actor and sampling) goes into provenance."""
    return {
        "format": FORMAT,
        "env_id": env_id,
        "kwargs": recorded_arguments(env),
        "seed": seed,
        "options": dict(options),
        "data_version": env.data_version,
        "parties": dict(env.parties),
        "provenance": {"agentgyms": __version__, "revision": git_revision(), **extra},
    }


def recorded_arguments(env: TextEnv) -> dict[str, Any]:
    """Return the arguments of an environment that a recording keeps."""
    left_out = (*CONNECTION_ARGUMENTS, "render_mode")  # rendering does not affect the episode
    return {k: v for k, v in env.arguments.items() if k not in left_out}


class RecordEpisodes(gym.Wrapper[Observation, str, Observation, str]):
    """Writes every episode of an environment to a file, turn by turn, from its reset without gaps.

    After a `restore` to another state every step raises until the next reset. An episode without a
    turn is not written.

    Args:
        env: An agentgyms environment made by `gymnasium.make`.
        path: The file; episodes are appended. A last line that was cut off, by a kill or a full
            disk, is taken away first; a file that is no recording is refused with `BadOption`.
        **provenance: Further provenance, such as the agent's name.
    """

    def __init__(self, env: gym.Env[Observation, str], path: str | Path, **provenance: Any) -> None:
        super().__init__(env)
        self._provenance = provenance
        self._last_recorded: tuple[int, str] | None = None  # turn and state_key of the last line
        self._unwritten_header = ""  # header and first state of an episode without a turn
        self._file = _opened(Path(path))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Reset; header and first state are written together with the first turn."""
        observation, info = self.env.reset(seed=seed, options=options)
        world = self.unwrapped
        if not isinstance(world, TextEnv) or world.spec is None:
            raise TypeError("RecordEpisodes needs an agentgyms environment made by gymnasium.make")
        used_seed, used_options = world.episode_source
        header = make_header(world.spec.id, world, used_seed, used_options, **self._provenance)
        first = turn_line(RecordedTurn(0, "", observation, 0.0, False, False, info))
        self._unwritten_header = f"{serialization.dumps(header)}\n{first}\n"
        self._last_recorded = info["turn"], info["state_key"]
        return observation, info

    def step(self, action: str) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Step, and write the turn.

        Raises `CallerError` if the environment is not in the state of the last recorded line.
        """
        self._check_continues()
        observation, reward, terminated, truncated, info = self.env.step(action)
        reward = float(reward)
        turn = RecordedTurn(info["turn"], action, observation, reward, terminated, truncated, info)
        self._file.append(f"{self._unwritten_header}{turn_line(turn)}\n".encode())
        self._unwritten_header, self._last_recorded = "", (info["turn"], info["state_key"])
        return observation, reward, terminated, truncated, info

    def _check_continues(self) -> None:
        episode = getattr(self.unwrapped, "_episode", None)
        if episode is None:
            return  # the environment itself raises
        info = episode.last.info
        if self._last_recorded != (info["turn"], info["state_key"]):
            end = (
                "before an episode"
                if self._last_recorded is None
                else f"at turn {self._last_recorded[0]}"
            )
            raise CallerError(
                f"the recording ends {end}, and the environment is in another state, at turn "
                f"{info['turn']}: it was restored, or stepped past the recorder; call reset() to "
                "record another episode"
            )

    def close(self) -> None:
        """Close the file and the environment."""
        self._file.close()
        super().close()


def _opened(path: Path) -> AppendedFile:
    """Open a recording to append to it, and mend its end."""
    if path.is_file():
        with path.open("rb") as content:
            first = content.readline(MOST_LINE)
        cut = first.startswith(BEGINNING) or BEGINNING.startswith(first)
        if not (is_header(first) if first.endswith(b"\n") else cut):
            raise BadOption(
                f"{path_end(path)} is no recording: give a new file, or one of episodes"
            )
    file = AppendedFile(path)
    taken = file.mend(is_line, is_header)
    if taken:
        _log.warning("%s: its end was cut off, %d bytes are taken away", path_end(path), taken)
    return file


def replay(recording: Recording, *, env_id: str | None = None, **kwargs: Any) -> int:
    """Replay a recording and compare every turn; return the number of equal turns, with the reset.

    A recording may come from anyone. It decides neither where an environment connects, nor what it
    reads, runs or imports: these arguments, and ids of the form `module:id`, are the caller's.

    Args:
        recording: The episode.
        env_id: The environment, instead of the recorded one.
        **kwargs: Arguments of `gymnasium.make` that override the recorded ones, such as `url`.

    Raises:
        ReplayMismatch: A turn differs; the message names the turn and the field.
        BadOption: The recording names no environment of this interface, or what only the caller may
            give; nothing was made.
    """
    header = recording.header
    env_id = env_id or check_id(str(header["env_id"]))
    taken = {name: value for name, value in header["kwargs"].items() if name not in kwargs}
    check_arguments(find_maker(env_id)[0], taken)
    env = make_text_env(env_id, **{**taken, **kwargs})
    try:
        check_arguments(type(env.unwrapped), taken)  # a function may have chosen the class
        return replay_in(env, recording)
    finally:
        env.close()


def replay_in(
    env: gym.Env[Any, str], recording: Recording, fields: Sequence[str] = COMPARED
) -> int:
    """Replay a recording in an environment that is open; return the number of equal turns.

    The reset counts. `fields` of `info` are compared beside observation, reward and ends; a
    `ReplayMismatch` names turn and field.
    """
    header = recording.header
    observation, info = env.reset(seed=header["seed"], options=header["options"])
    replayed = RecordedTurn(0, "", observation, 0.0, False, False, info)
    for recorded in recording.turns:
        if recorded.turn:
            observation, reward, terminated, truncated, info = env.step(recorded.action)
            replayed = RecordedTurn(
                recorded.turn,
                recorded.action,
                observation,
                float(reward),
                terminated,
                truncated,
                info,
            )
        _compare(recorded, replayed, fields)
    return len(recording.turns)


def _compare(recorded: RecordedTurn, replayed: RecordedTurn, fields: Sequence[str]) -> None:
    for key in fields:
        _compare_field(
            recorded.turn, f"info[{key!r}]", recorded.info.get(key), replayed.info.get(key)
        )
    if not equal_observations(recorded.observation, replayed.observation):
        raise _difference(recorded.turn, "observation", recorded.observation, replayed.observation)
    for key in ("reward", "terminated", "truncated"):
        _compare_field(recorded.turn, key, getattr(recorded, key), getattr(replayed, key))


def _compare_field(turn: int, name: str, recorded: Any, replayed: Any) -> None:
    if not _equal(recorded, replayed):
        raise _difference(turn, name, recorded, replayed)


def _equal(recorded: Any, replayed: Any) -> bool:
    if isinstance(recorded, Mapping) and isinstance(replayed, Mapping):
        known = recorded.keys() <= replayed.keys()  # later versions may measure more
        return known and all(_equal(recorded[name], replayed[name]) for name in recorded)
    both_nan = recorded != recorded and replayed != replayed  # unrated in both
    return bool(recorded == replayed) or both_nan


def _difference(turn: int, name: str, recorded: Any, replayed: Any) -> ReplayMismatch:
    return ReplayMismatch(
        f"turn {turn}: {name} was recorded as {shown(recorded)}, replay gives {shown(replayed)}"
    )


@cache
def git_revision() -> str:
    """Return the git revision of this source tree, or "" outside a checkout."""
    here = Path(__file__).resolve()
    git = ["git", "-C", str(here.parent)]
    if _output([*git, "ls-files", "--error-unmatch", here.name]) == "":
        return ""
    return _output([*git, "describe", "--always", "--dirty", "--abbrev=12"])


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
