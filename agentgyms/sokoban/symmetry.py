"""Rooms up to turning and mirroring: what makes two of them the same room."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Tiles = NDArray[np.uint8]


def canonical(tiles: Tiles) -> NDArray[np.bytes_]:
    """Return for each room a name that it shares with its turned and mirrored copies alone.

    A square room has eight symmetries, another one four.

    Args:
        tiles: Rooms as tile numbers. Shape [R, H, W].

    Returns:
        H * W + 2 bytes for each room, the smallest of its copies' names. Shape [R].
    """
    copies = [_names(copy) for copy in _copies(tiles)]
    smallest: NDArray[np.bytes_] = np.sort(np.stack(copies), axis=0)[0]
    return smallest


def _copies(tiles: Tiles) -> list[Tiles]:
    turned = [tiles, np.rot90(tiles, axes=(1, 2))]
    turned += [copy[:, ::-1, ::-1] for copy in turned]
    return turned + [copy[:, :, ::-1] for copy in turned]


def _names(tiles: Tiles) -> NDArray[Any]:
    """Return the shape and the tiles of each room as bytes above 0, as numpy cuts off zeros."""
    count, height, width = tiles.shape
    flat = np.empty((count, height * width + 2), np.uint8)
    flat[:, :2] = height, width
    flat[:, 2:] = tiles.reshape(count, -1) + 1
    names: NDArray[Any] = flat.view(f"S{flat.shape[1]}")[:, 0]
    return names
