"""Numbers of a run: one JSON line per step, and TensorBoard.

Names are `section/name`. Times are in seconds and live under `time/`; everything else depends on
the configuration alone, so that two runs of one seed have equal lines apart from `time/`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.errors import CheckpointError


class MetricsLog:
    """Appends to `metrics.jsonl` and to TensorBoard's files.

    Args:
        folder: The run's folder.
        resume_step: Lines of later steps are dropped, because those steps will be run again.
    """

    def __init__(self, folder: Path, resume_step: int | None = None) -> None:
        """Open both."""
        from torch.utils.tensorboard import SummaryWriter

        self._path = folder / "metrics.jsonl"
        kept = [] if resume_step is None else [r for r in read(folder) if r["step"] <= resume_step]
        self._path.write_text("".join(_line(record) for record in kept), encoding="utf-8")
        purge = None if resume_step is None else resume_step + 1
        self._board: Any = SummaryWriter(str(folder / "tensorboard"), purge_step=purge)

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Write the figures of a step."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(_line({"step": step, **values}))
        for name, value in values.items():
            if math.isfinite(value):
                self._board.add_scalar(name, value, step)

    def close(self) -> None:
        """Finish TensorBoard's files."""
        self._board.close()


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
