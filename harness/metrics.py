"""Numbers of a run: one JSON line per step and evaluation, and whoever else wants them.

Names are `section/name`. What depends on the clock or the machine lives under `time/`, `memory/`
and `cost/`; everything else depends on the configuration alone, so that two runs of one seed have
equal lines apart from those (`repeatable`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from harness import durable, tracking
from harness.errors import CheckpointError
from harness.tracking import Tracker

OF_THE_MACHINE: Final = ("time/", "memory/", "cost/")
"""Sections of figures that differ from one run to the next."""


class MetricsLog:
    """Appends to `metrics.jsonl` and tells trackers.

    Args:
        folder: The run's folder.
        resume_step: Lines of later steps are dropped, because those steps will be run again.
        trackers: Who else gets the figures; see `harness.tracking`.

    Attributes:
        kept: Records of the steps before.
    """

    def __init__(
        self, folder: Path, resume_step: int | None = None, trackers: Sequence[Tracker] = ()
    ) -> None:
        """Drop what will be written again."""
        self._path, self._trackers = folder / "metrics.jsonl", trackers
        known = [] if resume_step is None else read(folder)
        self.kept = [record for record in known if record["step"] <= (resume_step or 0)]
        durable.write(self._path, "".join(_line(record) for record in self.kept))

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Write the figures of a step."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(_line({"step": step, **values}))
        for tracker in self._trackers:
            tracker.write(step, tracking.finite(values))

    def flush(self) -> None:
        """Wait until all that was written is on the disk."""
        durable.flush(self._path)
        for tracker in self._trackers:
            tracker.flush()

    def close(self) -> None:
        """Finish the trackers."""
        for tracker in self._trackers:
            tracker.close()


class SilentLog:
    """Keeps nothing, for a process that is not the first of several."""

    kept: Sequence[Mapping[str, Any]] = ()

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Write nothing."""

    def flush(self) -> None:
        """Wait for nothing."""

    def close(self) -> None:
        """Close nothing."""


Log = MetricsLog | SilentLog
"""Where figures go."""


def repeatable(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of a record that every run of its configuration has."""
    return {k: v for k, v in record.items() if not k.startswith(OF_THE_MACHINE)}


def _line(record: Mapping[str, float | None]) -> str:
    plain = {k: v if v is not None and math.isfinite(v) else None for k, v in record.items()}
    return json.dumps(plain, allow_nan=False) + "\n"


def read(folder: Path) -> list[dict[str, Any]]:
    """Return the records of a run, in order; a last line cut off by a crash is left out.

    Raises:
        CheckpointError: A line before the last is damaged.
    """
    path = folder / "metrics.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    records = []
    for number, line in enumerate(lines, 1):
        try:
            records.append(json.loads(line))
        except ValueError:
            if number < len(lines):
                raise CheckpointError(f"{path}, line {number}: not a record of metrics") from None
    return records
