"""The metrics of a run: one JSON line per step and evaluation, also sent to trackers.

Names are `section/name`. Metrics of the sections `time/`, `memory/` and `cost/` depend on the
machine. All others depend only on the configuration and the seed (`repeatable`).
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from agentgyms.data import writing
from agentgyms.data.users_files import lines_in, parse_json, read_text
from harness.runs.tracking import Tracker
from harness.types.errors import CheckpointError

MACHINE_SECTIONS: Final = ("time/", "memory/", "cost/")
"""Sections of metrics that differ between two runs of one configuration."""

MOST_BYTES: Final = 1 << 30


class MetricsLog:
    """Appends metrics to `metrics.jsonl` and sends them to trackers.

    A resumed run drops the lines after `resume_step`, because those steps run again; `kept` has the
    others.
    """

    def __init__(
        self, folder: Path, resume_step: int | None = None, trackers: Sequence[Tracker] = ()
    ) -> None:
        """Drop the records of steps that run again."""
        self._path, self._trackers = folder / "metrics.jsonl", trackers
        known = [] if resume_step is None else read(folder)
        self.kept = [record for record in known if record["step"] <= (resume_step or 0)]
        writing.write(self._path, "".join(_line(record) for record in self.kept))

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

    kept: Sequence[Mapping[str, Any]] = ()

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
    """Return the records of a run, in order; an incomplete last line is left out.

    Raises `CheckpointError` if the file cannot be read, or a whole line is damaged.
    """
    path = folder / "metrics.jsonl"
    try:
        text = read_text(path, MOST_BYTES) if path.exists() else ""
    except (OSError, UnicodeError) as e:
        raise CheckpointError(f"{path} cannot be read: {e}") from None
    lines = lines_in(text)
    records = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            records.append(_record(line))
        except ValueError as e:
            if number < len(lines) or text.endswith("\n"):
                raise CheckpointError(
                    f"{path}, line {number}: not a record of metrics: {e}; mend or delete the line"
                ) from None
    return records


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
