"""Parses level files of Boxoban and other collections."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

from agentgyms.core.errors import DataCorrupt, DataMissing
from agentgyms.data.users_files import lines_in, read_text
from agentgyms.envs.sokoban.engine import (
    BOX,
    BOX_ON_TARGET,
    FLOOR,
    PLAYER,
    PLAYER_ON_TARGET,
    TARGET,
    WALL,
    Room,
    room_of_tiles,
)

_TILES: Final = {
    "#": WALL,
    " ": FLOOR,
    "-": FLOOR,
    "_": FLOOR,
    ".": TARGET,
    "$": BOX,
    "*": BOX_ON_TARGET,
    "@": PLAYER,
    "+": PLAYER_ON_TARGET,
}
MAX_SIDE: Final = 60
"""Maximum cells of a side, so that a room fits into an observation in every format."""
_ROW: Final = re.compile(r"[#\-_.$*@+ ]+")


class Drawing(NamedTuple):
    """The text of a level, and its file and line, for errors."""

    where: str
    rows: list[str]

    def room(self) -> Room:
        """Return the room; raise `DataCorrupt` if the level is invalid."""
        for row in self.rows:
            if not _ROW.fullmatch(row):
                raise DataCorrupt(
                    f"{self.where}: {row!r:.80} is no row of a level: expected # @ $ . * + only"
                )
        width = max(map(len, self.rows))
        if max(width, len(self.rows)) > MAX_SIDE:
            raise DataCorrupt(f"{self.where}: more than {MAX_SIDE} cells a side")
        # Short rows are padded with walls.
        tiles = [[_TILES[c] for c in row] + [WALL] * (width - len(row)) for row in self.rows]
        try:
            room = room_of_tiles(tiles)
        except ValueError as e:
            raise DataCorrupt(f"{self.where}: {e}") from None
        boxes, targets = room.boxes.bit_count(), room.targets.bit_count()
        if boxes != targets or not boxes:
            raise DataCorrupt(f"{self.where}: {boxes} boxes for {targets} targets")
        if room.boxes == room.targets:
            raise DataCorrupt(f"{self.where}: the level is solved already")
        return room


def read_drawings(path: Path) -> list[Drawing]:
    """Return the levels of a file, separated by blank lines or lines such as `; 17`."""
    try:
        text = read_text(path)
    except OSError as e:
        raise DataMissing(f"the level file {path} cannot be read: {e.strerror}") from None
    except UnicodeError as e:
        raise DataCorrupt(f"{path} is no text file: {e}") from None
    drawings, rows = [], list[str]()
    for number, line in enumerate([*lines_in(text), ""], 1):
        if line.strip() and not line.lstrip().startswith(";"):
            rows.append(line.rstrip())
        elif rows:
            drawings.append(Drawing(f"{path}, line {number - len(rows)}", rows))
            rows = []
    if not drawings:
        raise DataCorrupt(f"{path} holds no level: expected drawings of #, @, $ and . characters")
    return drawings
