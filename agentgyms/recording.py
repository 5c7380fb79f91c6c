"""Recordings: one JSON-lines format for people's and agents' episodes, and their verified replay.

An episode is a header line, a line for the reset (turn 0), and a line per turn. A file may hold
several episodes one after another. Only the header's `provenance` depends on when or where it was
made.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import IO, Any, Final

import gymnasium as gym

import agentgyms
from agentgyms import wire
from agentgyms.core import Observation, TextEnv
from agentgyms.errors import BadRequest, DataCorrupt, DataMissing, ReplayMismatch

FORMAT: Final = "agentgyms-recording-1"
_CONNECTION_ARGUMENTS: Final = ("url", "token", "env_id")


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """One line of a recording; the reset is turn 0, with action "" and reward 0."""

    turn: int
    action: str
    observation: Observation
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]


@dataclass(slots=True)
class Recording:
    """One recorded episode.

    Attributes:
        header: Environment id, keyword arguments, seed, options and provenance.
        turns: The reset and every turn after it.
    """

    header: dict[str, Any]
    turns: list[RecordedTurn] = field(default_factory=list)

    @property
    def actions(self) -> list[str]:
        """The actions taken."""
        return [turn.action for turn in self.turns[1:]]


def make_header(
    env_id: str, env: TextEnv, seed: int, options: Mapping[str, Any], **extra: Any
) -> dict[str, Any]:
    """Return an episode's header; `extra` (who acted, with which sampling) goes to provenance."""
    kwargs = {k: v for k, v in env.arguments.items() if k not in _CONNECTION_ARGUMENTS}
    return {
        "format": FORMAT,
        "env_id": env_id,
        "kwargs": kwargs,
        "seed": seed,
        "options": dict(options),
        "data_version": env.data_version,
        "provenance": {"agentgyms": agentgyms.__version__, "revision": git_revision(), **extra},
    }


def turn_line(turn: RecordedTurn) -> str:
    """Return a turn as its line, without the newline."""
    return wire.dumps(
        {
            "turn": turn.turn,
            "action": turn.action,
            "observation": wire.encode_observation(turn.observation),
            "reward": turn.reward,
            "terminated": turn.terminated,
            "truncated": turn.truncated,
            "info": wire.encode_info(turn.info),
        }
    )


class RecordEpisodes(gym.Wrapper[Observation, str, Observation, str]):
    """Writes every episode of an environment to a file, turn by turn.

    Args:
        env: An agentgyms environment made by `gymnasium.make`.
        path: The file; episodes are appended.
        **provenance: Anything the reader should know, such as the agent's name.
    """

    def __init__(self, env: gym.Env[Observation, str], path: str | Path, **provenance: Any) -> None:
        """Open the file."""
        super().__init__(env)
        self._provenance = provenance
        self._file: IO[str] = Path(path).open("a", encoding="utf-8")  # noqa: SIM115

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Reset, and write the header and the first state."""
        observation, info = self.env.reset(seed=seed, options=options)
        world = self.unwrapped
        if not isinstance(world, TextEnv) or world.spec is None:
            raise TypeError("RecordEpisodes needs an agentgyms environment made by gymnasium.make")
        used_seed, used_options = world.episode_source
        header = make_header(world.spec.id, world, used_seed, used_options, **self._provenance)
        self._write(wire.dumps(header))
        self._write(turn_line(RecordedTurn(0, "", observation, 0.0, False, False, info)))
        return observation, info

    def step(self, action: str) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Step, and write the turn."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        reward = float(reward)
        turn = RecordedTurn(info["turn"], action, observation, reward, terminated, truncated, info)
        self._write(turn_line(turn))
        return observation, reward, terminated, truncated, info

    def _write(self, line: str) -> None:
        self._file.write(line + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file and the environment."""
        self._file.close()
        super().close()


def read(path: str | Path) -> list[Recording]:
    """Return the episodes of a file.

    Raises:
        DataMissing: There is no such file.
        DataCorrupt: A line is not a recording's; the message names it.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise DataMissing(f"there is no recording {path}") from None
    return list(parse(lines, str(path)))


def parse(lines: Iterable[str], name: str) -> Iterator[Recording]:
    """Yield the episodes in `lines`; `name` stands for their file in messages.

    Raises:
        DataCorrupt: A line is not a recording's.
    """
    current: Recording | None = None
    for number, line in enumerate(lines, 1):
        try:
            fields = wire.loads(line, "line")
            if "format" in fields:
                if current:
                    yield current
                current = _header(fields)
            elif current is None:
                raise BadRequest("no header line comes before it")
            else:
                current.turns.append(_turn(fields, expected=len(current.turns)))
        except (BadRequest, KeyError, TypeError, AttributeError) as e:
            raise DataCorrupt(f"{name}, line {number}: not a line of a recording: {e}") from None
    if current:
        yield current


def _header(fields: dict[str, Any]) -> Recording:
    if fields["format"] != FORMAT:
        raise BadRequest(f"format {fields['format']!r}, expected {FORMAT!r}")
    for key in ("env_id", "kwargs", "seed", "options"):
        if key not in fields:
            raise BadRequest(f"the header has no {key!r}")
    return Recording(fields)


def _turn(fields: dict[str, Any], expected: int) -> RecordedTurn:
    if fields["turn"] != expected:
        raise BadRequest(f"turn {fields['turn']}, expected turn {expected}")
    return RecordedTurn(
        turn=fields["turn"],
        action=fields["action"],
        observation=wire.decode_observation(fields["observation"]),
        reward=wire.decode_number(fields["reward"]),
        terminated=fields["terminated"],
        truncated=fields["truncated"],
        info=wire.decode_info(fields["info"]),
    )


def replay(recording: Recording, **kwargs: Any) -> int:
    """Play a recording again and compare every turn.

    Args:
        recording: The episode.
        **kwargs: Given to `gymnasium.make` on top of the recorded ones, such as `url`.

    Returns:
        The number of turns that agreed, the reset included.

    Raises:
        ReplayMismatch: A turn differs; the message names the turn and the field.
    """
    header = recording.header
    env = gym.make(header["env_id"], **{**header["kwargs"], **kwargs})
    try:
        observation, info = env.reset(seed=header["seed"], options=header["options"])
        got = RecordedTurn(0, "", observation, 0.0, False, False, info)
        for recorded in recording.turns:
            if recorded.turn:
                observation, reward, terminated, truncated, info = env.step(recorded.action)
                got = RecordedTurn(
                    recorded.turn,
                    recorded.action,
                    observation,
                    float(reward),
                    terminated,
                    truncated,
                    info,
                )
            _compare(recorded, got)
    finally:
        env.close()
    return len(recording.turns)


def _compare(recorded: RecordedTurn, got: RecordedTurn) -> None:
    for key in (
        "task_id",
        "state_key",
        "observation_key",
        "admissible_actions",
        "feedback",
        "success",
    ):
        _compare_field(recorded.turn, f"info[{key!r}]", recorded.info.get(key), got.info.get(key))
    for key in ("observation", "reward", "terminated", "truncated"):
        _compare_field(recorded.turn, key, getattr(recorded, key), getattr(got, key))


def _compare_field(turn: int, name: str, recorded: Any, got: Any) -> None:
    if recorded != got:
        raise ReplayMismatch(
            f"turn {turn}: {name} was recorded as {recorded!r}, replay gives {got!r}"
        )


@cache
def git_revision() -> str:
    """Return the revision of the source tree this package runs from, or "" outside a checkout."""
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
