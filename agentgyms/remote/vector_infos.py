"""The infos of many environments as one info of arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

_NUMBERS: Final = (int, float, bool)
_OBJECTS: Final = (str, list)


def batched_infos(
    infos: Mapping[int, dict[str, Any]],
    num_envs: int,
    add_info: Callable[[dict[str, Any], dict[str, Any], int], dict[str, Any]],
) -> dict[str, Any]:
    """Return what Gymnasium's `VectorEnv._add_info` (`add_info`) makes of infos by environment.

    It is faster where each key has values of one type. The arrays have length `num_envs`.
    """
    columns = _columns(infos, num_envs)
    if columns is not None:
        return columns
    batched: dict[str, Any] = {}
    for i, info in infos.items():
        batched = add_info(batched, info, i)
    return batched


def _columns(rows: Mapping[int, dict[str, Any]], num_envs: int) -> dict[str, Any] | None:
    """Return an array and a mask for every key; None where values of a key are not alike."""
    if any("final_obs" in row for row in rows.values()):
        return None
    columns: dict[str, Any] = {}
    for name in dict.fromkeys(name for row in rows.values() for name in row):
        values = {i: row[name] for i, row in rows.items() if name in row}
        column = _column(values, num_envs)
        if column is None:
            return None
        mask = np.zeros(num_envs, dtype=np.bool_)
        mask[list(values)] = True
        columns[name], columns[f"_{name}"] = column, mask
    return columns


def _column(values: Mapping[int, Any], num_envs: int) -> Any:
    kind, *others = {type(value) for value in values.values()}
    if others:
        return None
    if kind is dict:
        return _columns(values, num_envs)
    if kind in _NUMBERS:
        # [num_envs]; members without an info keep 0, as in Gymnasium
        numbers = np.zeros(num_envs, dtype=kind)
        numbers[list(values)] = list(values.values())
        return numbers
    if kind in _OBJECTS:
        objects = np.full(num_envs, fill_value=None, dtype=object)
        for i, value in values.items():
            objects[i] = value
        return objects
    return None
