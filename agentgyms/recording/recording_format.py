"""Recordings as JSON lines: for each episode a header, the reset (turn 0), and a line per turn.

Only the header's `provenance` depends on when or where it was recorded.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import Any, Final

from agentgyms.core import serialization
from agentgyms.core.env import Observation
from agentgyms.core.errors import BadRequest, DataCorrupt, DataMissing, path_end
from agentgyms.data import users_files

FORMAT: Final = "agentgyms-recording-1"
MOST_LINE: Final = 1 << 24
MOST_EPISODE: Final = 1 << 26
"""Most bytes of a line and of an episode: what JSON becomes takes up to twenty times as many."""

_log = logging.getLogger(__name__)

BEGINNING: Final = f'{{"format":"{FORMAT}"'.encode()
"""The first bytes of a recording that `agentgyms` has written."""
_HEADER: Final[dict[str, type]] = {"env_id": str, "kwargs": dict, "seed": int, "options": dict}
_TURN: Final[dict[str, type]] = {
    "turn": int,
    "action": str,
    "terminated": bool,
    "truncated": bool,
}


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """One line of a recording; the reset is turn 0, with action "" and reward 0.

    `agent` is the agent's prompt and response, for readers; a replay ignores it.
    """

    turn: int
    action: str
    observation: Observation
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]
    agent: dict[str, Any] = field(default_factory=dict)


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


def turn_line(turn: RecordedTurn) -> str:
    """Return a turn as a JSON line, without the newline."""
    agent = {"agent": turn.agent} if turn.agent else {}
    return serialization.dumps(
        {
            "turn": turn.turn,
            "action": turn.action,
            "observation": serialization.encode_observation(turn.observation),
            "reward": serialization.encode_number(turn.reward),
            "terminated": turn.terminated,
            "truncated": turn.truncated,
            "info": serialization.encode_info(turn.info),
            **agent,
        }
    )


def read(path: str | Path) -> list[Recording]:
    """Return the episodes of a file; a last line that was cut off is left out with a warning.

    Raises `DataMissing` if the file does not exist, and `DataCorrupt` if there is no episode or
    another line, which the message names, is invalid.
    """
    if Path(path).is_char_device():  # it may never end
        raise DataCorrupt(f"{path} is a device: expected a recording, JSON lines")
    try:
        with Path(path).open("rb") as file:
            bounded = _Bounded(file, str(path))
            lines = list(users_files.lines_of(bounded))
    except FileNotFoundError:
        raise DataMissing(f"there is no recording {path}") from None
    except (UnicodeError, IsADirectoryError) as e:
        what = "a folder" if isinstance(e, IsADirectoryError) else f"no text file ({e})"
        raise DataCorrupt(f"{path} is {what}: expected a recording, JSON lines") from None
    if lines and bounded.is_cut and not is_line(lines[-1]):
        del lines[-1]
        if lines and is_header(lines[-1]):
            del lines[-1]
        _log.warning("%s: its last line was cut off and is left out", path_end(path))
    episodes = list(parse(lines, str(path)))
    if not episodes:
        raise DataCorrupt(f"{path} holds no episode: expected a recording, JSON lines")
    return episodes


def recordings_in(path: Path) -> list[Path]:
    """Return the recordings in and below a folder, or the file; `DataMissing` if there is none."""
    if not path.is_dir():
        return [path]
    found = [file for file in users_files.files_below(path) if _is_recording(file)]
    if not found:
        raise DataMissing(
            f"there is no recording in {path!s:.150}: expected files *.jsonl that "
            "`agentgyms record`, `harness eval` or another program recorded"
        )
    return found


def _is_recording(file: Path) -> bool:
    if file.suffix != ".jsonl":
        return False
    with file.open("rb") as opened:
        return f'"{FORMAT}"'.encode() in opened.read(67)


class _Bounded:
    """A recording that may be a stranger's; `is_cut` if the last line that was read has no end."""

    def __init__(self, file: BufferedReader, name: str) -> None:
        self._file, self._name = file, name
        self._number = self._episode = 0
        self.is_cut = False

    def peek(self, size: int, /) -> bytes:
        return self._file.peek(size)

    def read(self, size: int, /) -> bytes:
        return self._file.read(size)

    def readline(self, size: int, /) -> bytes:
        """Read a line; raise `DataCorrupt` at a line or an episode that would take the memory."""
        line = self._file.readline(min(size, MOST_LINE + 1))
        self._number += 1
        begins = line.startswith(b'{"format"')
        self._episode = len(line) + (0 if begins else self._episode)
        for length, most, what in (
            (len(line), MOST_LINE, "line"),
            (self._episode, MOST_EPISODE, "episode"),
        ):
            if length > most:
                raise DataCorrupt(
                    f"{self._name}, line {self._number}: the {what} has more than {most >> 20} "
                    "MiB, as no recording has"
                )
        if line:
            self.is_cut = not line.endswith(b"\n")
        return line


def lines_of(path: Path) -> Iterator[str]:
    """Yield the lines of a recording; raise `DataCorrupt` where one would take the memory."""
    with path.open("rb") as file:
        yield from users_files.lines_of(_Bounded(file, path.name))


def is_line(line: str | bytes) -> bool:
    """Return whether a line is whole: a JSON object."""
    try:
        return isinstance(serialization.loads(line), dict)
    except BadRequest:
        return False


def is_header(line: str | bytes) -> bool:
    """Return whether a line is an episode's header."""
    try:
        fields = serialization.loads(line)
    except BadRequest:
        return False
    return isinstance(fields, dict) and fields.get("format") == FORMAT


def parse(lines: Iterable[str], name: str) -> Iterator[Recording]:
    """Yield the episodes in `lines`; blank lines are skipped.

    Raises `DataCorrupt`, which names the file by `name`, for an invalid line and for an episode
    with a header and no turn.
    """
    current: Recording | None = None
    for number, line in ((n, line) for n, line in enumerate(lines, 1) if line.strip()):
        try:
            fields = serialization.loads(line, "line")
            if not isinstance(fields, dict):
                raise BadRequest(f"expected a JSON object, got {type(fields).__name__}")
            if "format" in fields:
                if current:
                    yield _check_complete(current)
                if fields["format"] != FORMAT:
                    raise BadRequest(f"format {fields['format']!r}, expected {FORMAT!r}")
                _check_types(fields, _HEADER, "header")
                current = Recording(fields)
            elif current is None:
                raise BadRequest("no header line comes before it")
            else:
                current.turns.append(_turn(fields, expected=len(current.turns)))
        except BadRequest as e:
            raise DataCorrupt(f"{name}, line {number}: not a line of a recording: {e}") from None
    if current:
        try:
            yield _check_complete(current)
        except BadRequest as e:
            raise DataCorrupt(f"{name}, at its end: {e}") from None


def _check_complete(recording: Recording) -> Recording:
    if not recording.turns:
        raise BadRequest("the header before it has no line of a reset (turn 0)")
    return recording


def _check_types(fields: Mapping[str, Any], types: Mapping[str, type], what: str) -> None:
    for key, expected in types.items():
        if key not in fields:
            raise BadRequest(f"the {what} has no {key!r}")
        if type(fields[key]) is not expected:
            given = type(fields[key]).__name__
            raise BadRequest(f"{key!r} of the {what} must be {expected.__name__}, got {given}")


def _turn(fields: dict[str, Any], expected: int) -> RecordedTurn:
    _check_types(fields, _TURN, "turn")
    if fields["turn"] != expected:
        raise BadRequest(f"turn {fields['turn']}, expected turn {expected}")
    agent = fields.get("agent", {})
    if not isinstance(agent, dict):
        raise BadRequest(f"'agent' of the turn must be an object, got {type(agent).__name__}")
    return RecordedTurn(
        turn=fields["turn"],
        action=fields["action"],
        observation=serialization.decode_observation(fields.get("observation")),
        reward=serialization.decode_number(fields.get("reward", "")),
        terminated=fields["terminated"],
        truncated=fields["truncated"],
        info=serialization.decode_info(fields.get("info")),
        agent=agent,
    )
