"""The metrics of a run: one JSON line per step and evaluation, also sent to trackers.

Names are `section/name`. Metrics of the sections `time/`, `memory/` and `cost/` depend on the
machine. All others depend only on the configuration and the seed (`repeatable`).
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

from agentgyms.data import writing
from agentgyms.data.users_files import TooLong, lines_of, parse_json
from harness.runs.tracking import Tracker
from harness.types.errors import CheckpointError

MACHINE_SECTIONS: Final = ("time/", "memory/", "cost/")
"""Sections of metrics that differ between two runs of one configuration."""

MOST_BYTES: Final = 1 << 30


class MetricsLog:
    """Appends metrics to `metrics.jsonl` and sends them to trackers.

    A resumed run drops the lines after `resume_step`, because those steps run again; `spent` is
    what the others have cost, in US dollars.
    """

    def __init__(
        self, folder: Path, resume_step: int | None = None, trackers: Sequence[Tracker] = ()
    ) -> None:
        self._path, self._trackers = folder / "metrics.jsonl", trackers
        self.spent = 0.0
        # One record at a time: those of a long run would fill the memory.
        with writing.replacing(self._path) as file:
            for record in _records(self._path) if resume_step is not None else ():
                if record["step"] <= resume_step:
                    file.write(_line(record).encode())
                    self.spent = max(self.spent, record.get("cost/so_far_usd") or 0.0)

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Write the metrics of a step."""
        with writing.AppendedFile(self._path) as file:
            file.append(_line({"step": step, **values}).encode())
        for tracker in self._trackers:
            tracker.write(step, {k: v for k, v in values.items() if math.isfinite(v)})

    def flush(self) -> None:
        """Wait until everything written is on the disk, and flush the trackers."""
        writing.flush(self._path)
        for tracker in self._trackers:
            tracker.flush()

    def close(self) -> None:
        """Close the trackers."""
        for tracker in self._trackers:
            tracker.close()


class SilentLog:
    """The log of all processes but the first; it writes nothing."""

    spent = 0.0

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Do nothing."""

    def flush(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


Log = MetricsLog | SilentLog
"""The metrics log of a process."""


def repeatable(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metrics of a record that are equal in every run of its configuration."""
    return {k: v for k, v in record.items() if not k.startswith(MACHINE_SECTIONS)}


def _line(record: Mapping[str, float | None]) -> str:
    plain = {k: v if v is not None and math.isfinite(v) else None for k, v in record.items()}
    return json.dumps(plain, allow_nan=False) + "\n"


def read(folder: Path) -> list[dict[str, Any]]:
    """Return a run's records, but for an incomplete last line; `CheckpointError` for damage."""
    return list(_records(folder / "metrics.jsonl"))


def _records(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a file, which may be missing; see `read`."""
    if not path.exists():
        return
    damage = ""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise TooLong(f"it has more than {MOST_BYTES >> 20} MiB, which are not read")
        with path.open("rb") as file:
            for number, line in enumerate(lines_of(file), 1):
                if damage:
                    raise CheckpointError(damage)
                if not line.strip():
                    continue
                try:
                    record = _record(line)
                except ValueError as e:
                    damage = f"{path}, line {number}: not a record of metrics: {e}"
                    damage += "; mend or delete the line"
                else:
                    yield record
            if damage and _is_whole(file):
                raise CheckpointError(damage)
    except (OSError, UnicodeError) as e:
        raise CheckpointError(f"{path} cannot be read: {e}") from None


def _is_whole(file: IO[bytes]) -> bool:
    """Return whether the last line of a file that is not empty has its end."""
    file.seek(-1, os.SEEK_END)
    return file.read() in (b"\n", b"\r")


def _record(line: str) -> dict[str, Any]:
    """Return a line's record, or raise `ValueError` if it has no step or no numbers."""
    record = parse_json(line)
    if not isinstance(record, dict) or type(record.get("step")) is not int:
        raise ValueError("expected a JSON object with a whole number as its step")
    wrong = [key for key, value in record.items() if not _is_number(value)]
    if wrong:
        raise ValueError(f"{wrong[0]!r} must be a number below 1e308 or null")
    return record


def _is_number(value: Any) -> bool:
    if isinstance(value, int):
        return abs(value) <= sys.float_info.max
    return value is None or isinstance(value, float)
