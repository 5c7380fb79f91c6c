"""Recordings of people's and agents' episodes: made turn by turn, and their verified replay.

The format is in `agentgyms.transcript`.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import IO, Any

import gymnasium as gym

import agentgyms
from agentgyms import observations, wire
from agentgyms.arguments import OF_CONNECTIONS
from agentgyms.core import Observation, TextEnv
from agentgyms.errors import BadOption, CallerError, ReplayMismatch
from agentgyms.observations import shown
from agentgyms.transcript import FORMAT, RecordedTurn, Recording, parse, read, turn_line

__all__ = [
    "RecordEpisodes",
    "RecordedTurn",
    "Recording",
    "git_revision",
    "make_header",
    "parse",
    "read",
    "replay",
    "turn_line",
]


def make_header(
    env_id: str, env: TextEnv, seed: int, options: Mapping[str, Any], **extra: Any
) -> dict[str, Any]:
    """Return an episode's header; `extra` (who acted, with which sampling) goes to provenance."""
    left_out = (*OF_CONNECTIONS, "render_mode")  # how it is shown decides nothing
    kwargs = {k: v for k, v in env.arguments.items() if k not in left_out}
    return {
        "format": FORMAT,
        "env_id": env_id,
        "kwargs": kwargs,
        "seed": seed,
        "options": dict(options),
        "data_version": env.data_version,
        "parties": dict(env.parties),
        "provenance": {"agentgyms": agentgyms.__version__, "revision": git_revision(), **extra},
    }


class RecordEpisodes(gym.Wrapper[Observation, str, Observation, str]):
    """Writes every episode of an environment to a file, turn by turn.

    An episode is recorded from its reset on, without gaps: after a `restore` to another state
    nothing is played or written until the next reset. It is in the file once its first turn was
    taken: where no agent came to act, nothing was played.

    Args:
        env: An agentgyms environment made by `gymnasium.make`.
        path: The file; episodes are appended.
        **provenance: Anything the reader should know, such as the agent's name.
    """

    def __init__(self, env: gym.Env[Observation, str], path: str | Path, **provenance: Any) -> None:
        """Open the file."""
        super().__init__(env)
        self._provenance = provenance
        self._place: tuple[int, str] | None = None  # turn and state_key of the last line
        self._beginning = ""  # header and first state of an episode without a turn
        self._file: IO[str] = Path(path).open("a", encoding="utf-8")  # noqa: SIM115

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Reset, and keep the header and the first state for the first turn to be written with."""
        observation, info = self.env.reset(seed=seed, options=options)
        world = self.unwrapped
        if not isinstance(world, TextEnv) or world.spec is None:
            raise TypeError("RecordEpisodes needs an agentgyms environment made by gymnasium.make")
        used_seed, used_options = world.episode_source
        header = make_header(world.spec.id, world, used_seed, used_options, **self._provenance)
        first = turn_line(RecordedTurn(0, "", observation, 0.0, False, False, info))
        self._beginning = f"{wire.dumps(header)}\n{first}\n"
        self._place = info["turn"], info["state_key"]
        return observation, info

    def step(self, action: str) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Step, and write the turn.

        Raises:
            CallerError: The episode does not stand where the last line left it.
        """
        self._check_place()
        observation, reward, terminated, truncated, info = self.env.step(action)
        reward = float(reward)
        turn = RecordedTurn(info["turn"], action, observation, reward, terminated, truncated, info)
        self._file.write(f"{self._beginning}{turn_line(turn)}\n")
        self._file.flush()
        self._beginning, self._place = "", (info["turn"], info["state_key"])
        return observation, reward, terminated, truncated, info

    def _check_place(self) -> None:
        episode = getattr(self.unwrapped, "_episode", None)
        if episode is None:
            return  # which the environment itself will say
        info = episode.last.info
        if self._place != (info["turn"], info["state_key"]):
            end = "before an episode" if self._place is None else f"at turn {self._place[0]}"
            raise CallerError(
                f"the recording ends {end}, and the environment is in another state, at turn "
                f"{info['turn']}: it was restored, or stepped past the recorder; call reset() to "
                "record another episode"
            )

    def close(self) -> None:
        """Close the file and the environment."""
        self._file.close()
        super().close()


def replay(recording: Recording, **kwargs: Any) -> int:
    """Play a recording again and compare every turn.

    Args:
        recording: The episode.
        **kwargs: Given to `gymnasium.make` on top of the recorded ones, such as `url`.

    Returns:
        The number of turns that agreed, the reset included.

    Raises:
        ReplayMismatch: A turn differs; the message names the turn and the field.
        BadOption: It names a model's server, which `kwargs` do not.
    """
    header = recording.header
    env = gym.make(header["env_id"], **{**header["kwargs"], **kwargs})
    try:
        _check_trusted(env.unwrapped, set(header["kwargs"]) - set(kwargs))
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


def _check_trusted(env: Any, recorded: set[str]) -> None:
    """Raise `BadOption` if a recording alone decides whose server gets the user's key."""
    for name in sorted(recorded - env.private_arguments):
        if env.is_private(name, env.arguments.get(name)):
            raise BadOption(
                f"the recording names a model and its server as {name}, which would get your key: "
                f"give {name} yourself (on the command line: --set {name}=...)"
            )


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
    if not observations.equal(recorded.observation, got.observation):
        raise _difference(recorded.turn, "observation", recorded.observation, got.observation)
    for key in ("reward", "terminated", "truncated"):
        _compare_field(recorded.turn, key, getattr(recorded, key), getattr(got, key))


def _compare_field(turn: int, name: str, recorded: Any, got: Any) -> None:
    if recorded != got and not (recorded != recorded and got != got):  # nan: not rated, both times
        raise _difference(turn, name, recorded, got)


def _difference(turn: int, name: str, recorded: Any, got: Any) -> ReplayMismatch:
    return ReplayMismatch(
        f"turn {turn}: {name} was recorded as {shown(recorded)}, replay gives {shown(got)}"
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
