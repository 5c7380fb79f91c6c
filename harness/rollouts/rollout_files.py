"""Writes rollouts to files and reads them, files of other programs included.

A file has JSON lines, compressed if its name ends with `.gz`. The first line is a header, with
`"format": "agentgyms-rollouts-1"` and a description of the file; each later line is a rollout.
A file of another program needs no header, and its rollouts need few fields:

    {"task_id": "kitchen-1", "turns": [{"action": "open door", "reward": 0}, ...]}

A rollout needs `turns`, and `task_id` or `group` (rollouts of one group started in the same state;
the default is one group per task). A turn needs `action` and `reward`. Other fields have the
defaults of `TurnTable.from_columns`: without `state_key` all states differ, `action_key` is the
action, `feedback` is `ok`, `next_observation` and `next_state_key` are those of the next turn, and
a rollout with a positive return is a success. Turns may have the columns that methods need, such as
`value`, as numbers; then every turn must have them.

Recordings of `agentgyms record` are read as rollouts too. Episodes of one task that started in one
state are a group.
"""

from __future__ import annotations

import gzip
import io
import itertools
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import numpy as np

from agentgyms.core.errors import BadRequest, DataCorrupt, DataMissing
from agentgyms.data import writing
from agentgyms.data.users_files import lines_of
from agentgyms.recording import recording_format
from harness.rollouts.codec import GroupNumbers, decode, encode
from harness.rollouts.from_recordings import from_recordings
from harness.types.arrays import Floats
from harness.types.errors import TableError
from harness.types.rollout import Rollout

FORMAT: Final = "agentgyms-rollouts-1"
COLUMNS: Final = (
    *("value", "process_reward", "entropy", "hindsight", "kl", "length"),
    *("state_value", "teacher_kl", "energy"),
)
"""Columns of a turn table that a file may hold: those that annotators fill."""


class RolloutFile(NamedTuple):
    """The rollouts of a file, and its columns by name, of shape [N] over all turns."""

    rollouts: list[Rollout]
    columns: dict[str, Floats]


def write(
    # The file; with `.gz` at the end of its name it is compressed. Folders are made.
    path: str | Path,
    rollouts: Sequence[Rollout],
    # Some of `COLUMNS`; one number for each turn of all rollouts in order. Shapes [N].
    columns: Mapping[str, Floats] | None = None,
    *,
    tokens: bool = True,
    images: bool = True,  # keep images, each once per rollout, as PNG
    # Fields of the header, such as the environment's id and the step.
    about: Mapping[str, Any] | None = None,
) -> None:
    """Write rollouts to a file atomically; raise `TableError` if a column does not fit."""
    path = Path(path)
    given = _checked(columns or {}, sum(len(rollout.turns) for rollout in rollouts))
    path.parent.mkdir(parents=True, exist_ok=True)
    with _open_for_writing(path) as file:
        file.write(_line({**(about or {}), "format": FORMAT, "columns": sorted(given)}))
        start = 0
        for rollout in rollouts:
            end = start + len(rollout.turns)
            own = {name: column[start:end].tolist() for name, column in given.items()}
            file.write(_line(encode(rollout, own, tokens=tokens, images=images)))
            start = end


def read(path: str | Path) -> RolloutFile:
    """Return rollouts and columns; raise `DataMissing`, or `DataCorrupt` that names a bad line."""
    path = Path(path)
    lines = _lines(path)
    first = next(lines, "")
    if _format_of(first) == recording_format.FORMAT:
        return RolloutFile(
            from_recordings(recording_format.parse([first, *lines], str(path)), path), {}
        )
    return _read_rollouts(path, first, lines)


def header(path: str | Path) -> dict[str, Any]:
    """Return the header of a file, empty if it has none; raise `DataMissing` or `DataCorrupt`."""
    first = next(_lines(Path(path)), "")
    return dict(json.loads(first)) if _format_of(first) == FORMAT else {}


def _read_rollouts(path: Path, first: str, lines: Iterator[str]) -> RolloutFile:
    kind = _format_of(first)
    if kind not in ("", FORMAT):
        raise DataCorrupt(
            f"{path}, line 1: format {kind!r}, expected {FORMAT!r} or {recording_format.FORMAT!r}"
        )
    rollouts: list[Rollout] = []
    columns: dict[str, list[float]] | None = None
    groups = GroupNumbers()
    content = lines if kind else itertools.chain([first], lines)
    for number, line in enumerate(content, 2 if kind else 1):
        if not line.strip():
            continue
        try:
            rollout, own = decode(_object(line, path, number), len(rollouts), groups, COLUMNS)
            if rollout.turns:
                columns = _extended(columns, own)
        except BadRequest as e:
            raise DataCorrupt(f"{path}, line {number}: {e}") from None
        rollouts.append(rollout)
    if not rollouts and not kind:
        raise DataCorrupt(f"{path} holds no rollouts: expected JSON lines, one for each rollout")
    return RolloutFile(
        rollouts, {name: np.asarray(values) for name, values in (columns or {}).items()}
    )


def _extended(
    columns: dict[str, list[float]] | None, own: dict[str, list[float]]
) -> dict[str, list[float]]:
    """Return the columns with the values of one more rollout."""
    if columns is None:
        return own
    if set(own) != set(columns):
        name = min(set(own) ^ set(columns))
        raise BadRequest(f"some turns of the file have {name!r} and others do not")
    for name, values in own.items():
        columns[name] += values
    return columns


def _checked(columns: Mapping[str, Floats], turns: int) -> dict[str, Floats]:
    checked = {}
    for name, column in columns.items():
        if name not in COLUMNS:
            raise TableError(f"unknown column {name!r}: expected some of {', '.join(COLUMNS)}")
        values = np.asarray(column, np.float64)
        if values.shape != (turns,):
            raise TableError(f"{name} has shape {values.shape}, expected ({turns},)")
        if not np.isfinite(values).all():
            raise TableError(f"{name} has numbers that are not finite")
        checked[name] = values
    return checked


def _line(value: Mapping[str, Any]) -> str:
    try:
        text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    except ValueError as e:
        raise TableError(f"a rollout has a number that is not finite: {e}") from None
    return text + "\n"


@contextmanager
def _open_for_writing(path: Path) -> Iterator[IO[str]]:
    """Open a file with bytes that depend on the text alone, not on the time or its name."""
    with ExitStack() as stack:
        binary: Any = stack.enter_context(writing.replacing(path))
        if path.suffix == ".gz":
            packed = gzip.GzipFile("", "wb", compresslevel=6, fileobj=binary, mtime=0)
            binary = stack.enter_context(packed)
        text = io.TextIOWrapper(binary, encoding="utf-8", newline="\n")
        yield text
        text.flush()
        text.detach()


def _lines(path: Path) -> Iterator[str]:
    try:
        with (
            gzip.GzipFile(path, "rb") if path.suffix == ".gz" else path.open("rb") as binary,
        ):
            yield from lines_of(binary)
    except (FileNotFoundError, NotADirectoryError):
        raise DataMissing(f"there is no file {path} of rollouts") from None
    except IsADirectoryError:
        raise DataCorrupt(
            f"{path} is a folder: expected JSON lines, one for each rollout"
        ) from None
    except (UnicodeError, gzip.BadGzipFile, EOFError, zlib.error) as e:
        raise DataCorrupt(f"{path} is damaged, or no text file: {e}") from None


def _format_of(line: str) -> str:
    """Return the format named in a first line; "" if the line is not a header."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    return str(value["format"]) if isinstance(value, dict) and "format" in value else ""


def _object(line: str, path: str | Path, number: int) -> Mapping[str, Any]:
    try:
        value = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError) as e:
        raise DataCorrupt(f"{path}, line {number}: not valid JSON: {e}") from None
    if not isinstance(value, dict):
        raise DataCorrupt(f"{path}, line {number}: expected an object, got {type(value).__name__}")
    return value


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON: leave out unknown values, and use finite numbers")
