"""The rules of Sokoban: rooms and states as integer bit masks.

Cell (row, column) of a room is bit `(row + 1) * (width + 1) + column`. The extra column and the
extra row above are never floor, so a step beyond the edge of a room without walls hits a wall.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

WALL, FLOOR, TARGET, BOX_ON_TARGET, BOX, PLAYER, PLAYER_ON_TARGET = range(7)
"""Tiles. 0 to 5 are gym-sokoban's; a player on a target is 5 there too."""

WORDS: Final = ("up", "down", "left", "right")
"""The actions of the environment; `WORDS[i]` is gym-sokoban's push action `i + 1`."""

NUM_ACTIONS: Final = 9
"""0 does nothing, 1 to 4 push or else move, 5 to 8 only move; each up, down, left, right."""


@dataclass(frozen=True)
class Room:
    """A room in its initial state: sizes with walls, masks of cells, and the player's bit."""

    height: int
    width: int
    floor: int
    targets: int
    boxes: int
    player: int

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.height, self.width, self.floor, self.targets, self.boxes, self.player))

    @cached_property
    def deltas(self) -> tuple[int, ...]:
        """The offset of a cell's bit for each action."""
        stride = self.width + 1
        moves = (-stride, stride, -1, 1)
        return (0, *moves, *moves)

    @cached_property
    def num_boxes(self) -> int:
        """Number of boxes."""
        return self.boxes.bit_count()

    @cached_property
    def ground(self) -> list[int]:
        """The tile of each cell by its bit, without boxes and player."""
        bits = range((self.height + 1) * (self.width + 1))
        return [(self.floor >> bit & 1) + (self.targets >> bit & 1) for bit in bits]

    def cell(self, row: int, column: int) -> int:
        """Return the bit of a cell."""
        return (row + 1) * (self.width + 1) + column

    def position(self, cell: int) -> tuple[int, int]:
        """Return row and column of a bit."""
        row, column = divmod(cell, self.width + 1)
        return row - 1, column


class Effect(NamedTuple):
    """The effect of an action."""

    moved: bool
    pushed: bool


_NOTHING: Final = Effect(False, False)
_MOVED: Final = Effect(True, False)
_PUSHED: Final = Effect(True, True)


class State:
    """The current positions of boxes (a mask) and player (a bit) in a room, which states share."""

    __slots__ = ("boxes", "player", "room")

    def __init__(self, room: Room, boxes: int | None = None, player: int | None = None) -> None:
        self.room = room
        self.boxes = room.boxes if boxes is None else boxes
        self.player = room.player if player is None else player

    def step(self, action: int) -> Effect:
        """Take one of the `NUM_ACTIONS` actions of gym-sokoban.

        A push action moves the box in front of the player if the cell behind the box is free, else
        it does nothing; without a box it moves the player.
        """
        if not action:
            return _NOTHING
        room = self.room
        delta = room.deltas[action]
        ahead = self.player + delta
        ahead_bit = 1 << ahead
        if not room.floor & ahead_bit:
            return _NOTHING
        if not self.boxes & ahead_bit:
            self.player = ahead
            return _MOVED
        behind_bit = 1 << (ahead + delta)
        if action > len(WORDS) or self.boxes & behind_bit or not room.floor & behind_bit:
            return _NOTHING
        self.boxes ^= ahead_bit ^ behind_bit
        self.player = ahead
        return _PUSHED

    @property
    def boxes_on_target(self) -> int:
        """Number of boxes minus uncovered targets, as in gym-sokoban."""
        return self.room.num_boxes - (self.room.targets & ~self.boxes).bit_count()

    @property
    def solved(self) -> bool:
        """Whether every target is covered."""
        return not self.room.targets & ~self.boxes

    def effective(self) -> list[str]:
        """Return the actions that would change the state."""
        floor, boxes = self.room.floor, self.boxes
        found = []
        for word, delta in zip(WORDS, self.room.deltas[1:], strict=False):
            ahead = self.player + delta
            behind = ahead + delta
            free = boxes >> ahead & 1 == 0 or (floor >> behind & 1 and not boxes >> behind & 1)
            if floor >> ahead & 1 and free:
                found.append(word)
        return found


@dataclass(frozen=True, slots=True)
class Rewards:
    """Rewards of a turn; the defaults are gym-sokoban's.

    `step` is for every turn, `on_target` and `off_target` for a box that was pushed onto or off a
    target, `solved` for covering all targets.
    """

    step: float = -0.1
    on_target: float = 1.0
    off_target: float = -1.0
    solved: float = 10.0

    def earned(self, before: int, after: int, solved: bool) -> float:
        """Return the reward of a turn from the numbers of boxes on targets before and after it."""
        reward = self.step
        if after > before:
            reward += self.on_target
        elif after < before:
            reward += self.off_target
        return reward + self.solved if solved else reward


def cells_of(mask: int) -> Iterator[int]:
    """Yield the indices of the set bits, in increasing order."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def room_of_tiles(tiles: Sequence[Iterable[int]], fixed: Sequence[Sequence[int]] = ()) -> Room:
    """Return the room with these tiles [H, W], among which there must be exactly one player.

    They are gym-sokoban's `room_state`, with its `room_fixed`, which shows whether the player is on
    a target; or tiles with `PLAYER_ON_TARGET` alone.
    """
    codes = [[int(tile) for tile in row] for row in tiles]
    for row, under in zip(codes, fixed, strict=False):
        row[:] = [
            _ON_TARGET.get(t, t) if u == TARGET else t for t, u in zip(row, under, strict=True)
        ]
    flat = bytes(tile for row in codes for tile in row)
    players = flat.count(PLAYER) + flat.count(PLAYER_ON_TARGET)
    if players != 1:
        raise ValueError(f"a room has one player, this one has {players}")
    return room_of_bytes(len(codes), len(codes[0]), flat)


_ON_TARGET: Final = {FLOOR: TARGET, BOX: BOX_ON_TARGET, PLAYER: PLAYER_ON_TARGET}


def _digits(*tiles: int) -> bytes:
    """Return a table for `bytes.translate` that makes 1 of the given tiles and 0 of all others."""
    return bytes(b"01"[tile in tiles] for tile in range(256))


_MASKS: Final = (
    _digits(FLOOR, TARGET, BOX_ON_TARGET, BOX, PLAYER, PLAYER_ON_TARGET),
    _digits(TARGET, BOX_ON_TARGET, PLAYER_ON_TARGET),
    _digits(BOX_ON_TARGET, BOX),
    _digits(PLAYER, PLAYER_ON_TARGET),
)


def room_of_bytes(height: int, width: int, tiles: bytes) -> Room:
    """Return the room with these tiles, row by row, a byte each, exactly one player among them."""
    rows = [tiles[i : i + width] for i in range(0, height * width, width)]
    last_first = b"\0".join([bytes(width), *rows])[::-1]
    floor, targets, boxes, player = (int(last_first.translate(table), 2) for table in _MASKS)
    return Room(height, width, floor, targets, boxes, player.bit_length() - 1)


def tiles_of(state: State) -> list[list[int]]:
    """Return the tiles of a state, `PLAYER_ON_TARGET` among them. Shape [H, W]."""
    room, player = state.room, state.player
    stride = room.width + 1
    tiles = room.ground.copy()
    for cell in cells_of(state.boxes):
        tiles[cell] = BOX_ON_TARGET if room.targets >> cell & 1 else BOX
    tiles[player] = PLAYER_ON_TARGET if room.targets >> player & 1 else PLAYER
    return [tiles[row : row + room.width] for row in range(stride, len(tiles), stride)]
