"""Level files of Boxoban and other collections: rooms drawn in the usual characters."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

from agentgyms.errors import DataCorrupt, DataMissing
from agentgyms.sokoban.engine import (
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
"""Most cells of a side: a larger room would not fit into an observation in every format."""
_ROW: Final = re.compile(r"[#\-_.$*@+ ]+")


class Drawing(NamedTuple):
    """A level as it is drawn.

    Attributes:
        where: File and line, for messages.
        rows: Its lines.
    """

    where: str
    rows: list[str]

    def room(self) -> Room:
        """Return the room.

        Raises:
            DataCorrupt: It is none that can be played.
        """
        for row in self.rows:
            if not _ROW.fullmatch(row):
                raise DataCorrupt(
                    f"{self.where}: {row!r:.80} is no row of a level: expected # @ $ . * + only"
                )
        width = max(map(len, self.rows))
        if max(width, len(self.rows)) > MAX_SIDE:
            raise DataCorrupt(f"{self.where}: more than {MAX_SIDE} cells a side")
        # What a short row leaves open lies outside of the room.
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
    """Return the levels of a file, which lines such as `; 17` or blank ones part.

    Raises:
        DataMissing: There is no such file.
        DataCorrupt: It is no text or holds no level.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as e:
        raise DataMissing(f"the level file {path} cannot be read: {e.strerror}") from None
    except UnicodeDecodeError as e:
        raise DataCorrupt(f"{path} is no text file: {e}") from None
    drawings, rows = [], list[str]()
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if line.strip() and not line.lstrip().startswith(";"):
            rows.append(line.rstrip())
        elif rows:
            drawings.append(Drawing(f"{path}, line {number - len(rows)}", rows))
            rows = []
    if not drawings:
        raise DataCorrupt(f"{path} holds no level: expected drawings of #, @, $ and . characters")
    return drawings
