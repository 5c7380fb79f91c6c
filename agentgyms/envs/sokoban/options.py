"""Checks the arguments of the Sokoban environments and creates the source of rooms."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from agentgyms.core.errors import BadOption, DataMissing
from agentgyms.envs.sokoban.engine import Rewards
from agentgyms.envs.sokoban.generator import Recipe
from agentgyms.envs.sokoban.levels import MAX_SIDE
from agentgyms.envs.sokoban.peer_rooms import PEERS
from agentgyms.envs.sokoban.sources import Generated, Levels, Peers, Source

_MIN_SIDE: Final = 4
_MAX_MOVES: Final = 500
_MAX_ROOMS: Final = 100_000
_MAX_CELLS: Final = 64
_MAX_PLACED: Final = 1 << 22
"""Most boxes in all ways to place them, where all are listed: they take 100 bytes each."""
_MAX_PEER_WORK: Final = 4_000
"""Most inner cells times boxes of a peer's room; what a search takes grows with both."""
_DEFAULT_MIN_MOVES: Final = 3
_DEFAULT_MAX_MOVES: Final = 15
_DEFAULT_ROOMS: Final = ((200, 10_000), (50_000, 1_000))
"""Default number of training rooms by the maximum number of ways to place the boxes."""
_MIN_DEFAULT_ROOMS: Final = 100
_MAX_FLOAT: Final = sys.float_info.max

GENERATED: Final = frozenset({"walls", "difficulty", "rooms"})
COMPAT: Final = frozenset({"peer", "search_depth"})


def open_source(given: Mapping[str, Any], arguments: Mapping[str, Any], max_turns: int) -> Source:
    """Return the source of rooms that an environment's arguments name.

    `given` are the arguments that differ from their defaults, `arguments` all. Generated rooms can
    be solved in `max_turns`.
    """
    levels, compat = arguments["levels"], arguments["compat_seed"]
    if not isinstance(compat, bool):
        raise BadOption(f"compat_seed must be True or False, got {compat!r}")
    if levels is not None:
        _check_unused(given, GENERATED | COMPAT | {"size", "boxes", "compat_seed"}, "levels")
        found = Path(levels).expanduser()
        if not found.exists():
            raise DataMissing(
                f"levels={levels!r} is no file or folder: give a folder of level files, such as "
                "boxoban-levels/unfiltered of https://github.com/google-deepmind/boxoban-levels"
            )
        return Levels.open(found.resolve())
    shape, boxes = check_size(arguments["size"]), arguments["boxes"]
    if not isinstance(boxes, int) or isinstance(boxes, bool) or boxes < 1:
        raise BadOption(f"boxes must be a positive whole number, got {boxes!r}")
    if (shape[0] - 2) * (shape[1] - 2) < boxes + 2:
        raise BadOption(f"boxes={boxes} do not fit into a room of {shape[0]} x {shape[1]} cells")
    if compat:
        _check_unused(given, GENERATED, "compat_seed=True")
        return _peers(shape, boxes, arguments["peer"], arguments["search_depth"])
    _check_unused(given, COMPAT, "rooms of the own generator; add compat_seed=True")
    return _generated(shape, boxes, arguments, max_turns)


def _check_unused(given: Mapping[str, Any], names: frozenset[str], what: str) -> None:
    wrong = sorted(names & set(given))
    if wrong:
        raise BadOption(f"{', '.join(wrong)} cannot be combined with {what}")


def check_size(size: Any) -> tuple[int, int]:
    """Return rows and columns of a whole number or a pair of them."""
    sides = [size, size] if isinstance(size, int) and not isinstance(size, bool) else size
    if not _is_pair(sides, int) or min(sides) < _MIN_SIDE or max(sides) == _MIN_SIDE:
        raise BadOption(
            f"size must be a whole number of at least {_MIN_SIDE + 1} cells, walls included, or "
            f"rows and columns, of which one may be {_MIN_SIDE}, got {size!r}"
        )
    return sides[0], sides[1]


def _is_pair(value: Any, kind: type) -> bool:
    return (
        isinstance(value, Sequence)
        and not isinstance(value, str | bytes)
        and len(value) == 2
        and all(isinstance(side, kind | int) and not isinstance(side, bool) for side in value)
    )


def _generated(
    shape: tuple[int, int], boxes: int, arguments: Mapping[str, Any], max_turns: int
) -> Generated:
    cells = (shape[0] - 2) * (shape[1] - 2)
    if cells > _MAX_CELLS:
        raise BadOption(
            f"size={arguments['size']!r} is too large to be generated: at most {_MAX_CELLS} cells "
            f"within the walls, this has {cells}. Take level files (levels=)"
        )
    walls = arguments["walls"]
    if _is_number(walls) and 0 <= walls <= 1:  # to a whole number of cells
        walls = [round(walls * cells) / cells] * 2
    if not _is_pair(walls, float) or not 0 <= walls[0] <= walls[1] <= 0.9:
        raise BadOption(
            f"walls must be a share of the inner cells in [0, 0.9] or a pair of them, least and "
            f"greatest, got {arguments['walls']!r}"
        )
    moves = _difficulty(arguments["difficulty"], max_turns)
    recipe = Recipe(*shape, boxes, (float(walls[0]), float(walls[1])), moves)
    if recipe.floor_sizes[0] > recipe.floor_sizes[1]:
        raise BadOption(
            f"walls={arguments['walls']!r} leaves no number of the {cells} inner cells that is a "
            f"room with boxes={boxes} and a player: widen it, or take more cells"
        )
    if recipe.has_table and recipe.num_masks * boxes > _MAX_PLACED:
        raise BadOption(
            f"boxes={boxes} in {cells} cells can be placed in {recipe.num_masks} ways, too many to "
            "list: take fewer boxes or a smaller size"
        )
    rooms = arguments["rooms"]
    return Generated(recipe, _rooms(rooms, recipe), fewer=rooms is None)


def _difficulty(difficulty: Any, max_turns: int) -> tuple[int, int]:
    if difficulty is None:
        return min(_DEFAULT_MIN_MOVES, max_turns), min(_DEFAULT_MAX_MOVES, max_turns)
    most = min(max_turns, _MAX_MOVES)
    if not _is_pair(difficulty, int) or not 1 <= difficulty[0] <= difficulty[1] <= most:
        raise BadOption(
            "difficulty must be the least and the greatest number of moves of a shortest solution, "
            f"at most {_MAX_MOVES} and max_turns={max_turns}, got {difficulty!r}"
        )
    return difficulty[0], difficulty[1]


def _rooms(rooms: Any, recipe: Recipe) -> int:
    if rooms is None:
        return next(
            (n for most, n in _DEFAULT_ROOMS if recipe.num_masks <= most), _MIN_DEFAULT_ROOMS
        )
    if not isinstance(rooms, int) or isinstance(rooms, bool) or not 1 <= rooms <= _MAX_ROOMS:
        raise BadOption(
            f"rooms must be a whole number from 1 to {_MAX_ROOMS} or None, got {rooms!r:.40}"
        )
    return rooms


def _peers(shape: tuple[int, int], boxes: int, peer: Any, depth: Any) -> Peers:
    peer = "verl_agent" if peer is None else peer
    if not isinstance(peer, str) or peer not in PEERS:
        raise BadOption(f"peer {peer!r} is unknown: expected one of {', '.join(PEERS)}")
    if max(shape) > MAX_SIDE:
        raise BadOption(f"size must be at most {MAX_SIDE} cells a side, got {max(shape)}")
    cells = (shape[0] - 2) * (shape[1] - 2)
    if cells * boxes > _MAX_PEER_WORK:
        raise BadOption(
            f"boxes={boxes} in {cells} cells take a peer's search too long: at most "
            f"{_MAX_PEER_WORK // cells} boxes in a room of this size"
        )
    settings = PEERS[peer]
    if depth is not None:
        if not settings.walks:
            raise BadOption("search_depth is a setting of ragen and verl_agent, not of gym_sokoban")
        if not isinstance(depth, int) or isinstance(depth, bool) or not 3 <= depth <= 300:
            raise BadOption(f"search_depth must be a whole number from 3 to 300, got {depth!r}")
        settings = dataclasses.replace(settings, depth=depth)
    return Peers(shape, boxes, settings)


def check_path(levels: Any) -> str:
    """Return `levels` as a path string."""
    path = os.fspath(levels) if isinstance(levels, os.PathLike) else levels
    if not isinstance(path, str):
        raise BadOption(f"levels must be the path of a folder or file, got {levels!r}")
    return path


def check_rewards(rewards: Any) -> Rewards:
    """Return the rewards, with the benchmark's defaults."""
    known = [field.name for field in dataclasses.fields(Rewards)]
    if rewards is None:
        return Rewards()
    if (
        not isinstance(rewards, Mapping)
        or not set(rewards) <= set(known)
        or not all(_is_number(value) for value in rewards.values())
    ):
        raise BadOption(
            f"rewards must be a dict of numbers for {', '.join(known)}, got {rewards!r}"
        )
    return Rewards(**{name: float(value) for name, value in rewards.items()})


def _is_number(value: Any) -> bool:
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _MAX_FLOAT
    )
