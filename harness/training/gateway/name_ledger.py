"""The names that a run's rollouts have had, in a file that outlives the process."""

from __future__ import annotations

import json
from collections import deque
from pathlib import Path
from typing import Final

from agentgyms.data import writing
from agentgyms.data.users_files import parse_json, read_lines
from harness.types.errors import CheckpointError

MOST_NAMES: Final = 65536
"""Names that are remembered; those of the oldest rollouts are forgotten."""


class NameLedger:
    """Knows which rollouts began in earlier processes of a run.

    Each line of the file is a name, as JSON; a missing file is made. Raises `CheckpointError` if
    the file is damaged. A last line without an end, which a kill leaves, is taken away.
    """

    def __init__(self, path: Path) -> None:
        with writing.AppendedFile(path) as file:
            file.mend(lambda _: False, lambda _: False)
        names = _names(path)
        if len(names) == MOST_NAMES:
            writing.write(path, "".join(map(_line, names)))
        self._file = writing.AppendedFile(path)
        self.earlier = frozenset(names)

    def add(self, name: str) -> None:
        """Write a name; raise `OSError` if it cannot be written."""
        self._file.append(_line(name).encode())

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _names(path: Path) -> deque[str]:
    names: deque[str] = deque(maxlen=MOST_NAMES)
    for number, line in enumerate(read_lines(path), 1):
        name = _name(line)
        if name is None:
            raise CheckpointError(
                f"{path}, line {number}: no name of a rollout; delete the line, or the file if no "
                "agent goes on with a rollout from before"
            )
        names.append(name)
    return names


def _name(line: str) -> str | None:
    try:
        name = parse_json(line)
    except ValueError:
        return None
    return name if isinstance(name, str) else None


def _line(name: str) -> str:
    return json.dumps(name) + "\n"
