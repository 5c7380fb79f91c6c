"""Canonical names of rooms up to rotation, reflection and translation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentgyms.envs.sokoban.engine import WALL

Tiles = NDArray[np.uint8]


def canonical(tiles: Tiles) -> NDArray[np.bytes_]:
    """Return a name for each room [R, H, W] that only rotated, mirrored and moved copies share."""
    copies = [_names(_shift_to_corner(copy)) for copy in _symmetries(tiles)]
    smallest: NDArray[np.bytes_] = np.sort(np.stack(copies), axis=0)[0]
    return smallest


def _symmetries(tiles: Tiles) -> list[Tiles]:
    turned = [tiles, np.rot90(tiles, axes=(1, 2))]
    turned += [copy[:, ::-1, ::-1] for copy in turned]
    return turned + [copy[:, :, ::-1] for copy in turned]


def _shift_to_corner(tiles: Tiles) -> Tiles:
    """Return the rooms translated so that the first row and the first column have floor."""
    _, height, width = tiles.shape
    floor = tiles != WALL
    down, right = floor.any(axis=2).argmax(axis=1), floor.any(axis=1).argmax(axis=1)
    rows = (np.arange(height) + down[:, None]) % height  # walls wrap around [R, H]
    columns = (np.arange(width) + right[:, None]) % width
    shifted = np.take_along_axis(tiles, rows[:, :, None], axis=1)
    return np.take_along_axis(shifted, columns[:, None, :], axis=2)


def _names(tiles: Tiles) -> NDArray[Any]:
    """Return shape and tiles of each room as bytes above 0, because numpy strips zeros."""
    count, height, width = tiles.shape
    flat = np.empty((count, height * width + 2), np.uint8)
    flat[:, :2] = height, width
    flat[:, 2:] = tiles.reshape(count, -1) + 1
    names: NDArray[Any] = flat.view(f"S{flat.shape[1]}")[:, 0]
    return names
