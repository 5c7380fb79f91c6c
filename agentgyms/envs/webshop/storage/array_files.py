"""A folder of arrays: each file is written atomically and read as a memory map."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from tokenize import TokenError
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from agentgyms.core.errors import DataCorrupt, DataMissing
from agentgyms.data.users_files import parse_json, read_text

Array = npt.NDArray[Any]

TABLE: Final = "arrays.json"
"""The file that lists the arrays; it is written last."""

_ADVICE: Final = "import the data set again"


def write_array(
    folder: Path, name: str, chunks: Iterable[Array], *, dtype: npt.DTypeLike, length: int
) -> list[Any]:
    """Write a 1-d array in chunks as `<name>.npy`; return its type, length and bytes."""
    kind = np.dtype(dtype)
    part = folder / f"{name}.npy.part"
    with part.open("wb") as file:
        header = {"descr": kind.str, "fortran_order": False, "shape": (length,)}
        np.lib.format.write_array_header_1_0(file, header)
        written = 0
        for chunk in chunks:
            content = np.ascontiguousarray(chunk, kind)
            file.write(content.data)
            written += len(content)
        size = file.tell()
    if written != length:
        raise RuntimeError(f"array {name} has {written} entries, expected {length}")
    part.replace(folder / f"{name}.npy")
    return [kind.str, length, size]


def write_table(folder: Path, metadata: Mapping[str, Any], rows: Mapping[str, list[Any]]) -> None:
    """Write the table of a folder: metadata, and a row for each array."""
    part = folder / f"{TABLE}.part"
    part.write_text(json.dumps({**metadata, "arrays": rows}, indent=1) + "\n", encoding="utf-8")
    part.replace(folder / TABLE)


def read_table(folder: Path, expected: Mapping[str, Any]) -> dict[str, Any]:
    """Return a folder's table, which must have the expected metadata."""
    try:
        table = dict(parse_json(read_text(folder / TABLE)))
    except FileNotFoundError:
        raise DataMissing(f"{folder} has no {TABLE}: {_ADVICE}") from None
    except (OSError, ValueError, TypeError) as e:
        raise DataCorrupt(f"{folder / TABLE} is damaged ({e}): {_ADVICE}") from None
    for key, value in expected.items():
        if table.get(key) != value:
            raise DataCorrupt(
                f"{folder / TABLE} has {key} {table.get(key)!r}, expected {value!r}: {_ADVICE}"
            )
    return table


def map_array(folder: Path, name: str, table: Mapping[str, Any]) -> Array:
    """Return an array mapped into memory, read-only; its file must agree with the table."""
    path = folder / f"{name}.npy"
    try:
        kind, length, size = table["arrays"][name]
        if path.stat().st_size != size:
            raise ValueError(f"it has {path.stat().st_size} bytes, expected {size}")
        mapped = load_array(path)
        if mapped.dtype != np.dtype(kind) or mapped.shape != (length,):
            raise ValueError(f"it has {mapped.dtype}{mapped.shape}, expected {kind}({length},)")
    except FileNotFoundError:
        raise DataMissing(f"{path} is missing: {_ADVICE}") from None
    except (OSError, ValueError, TypeError, LookupError) as e:
        raise DataCorrupt(f"{path} is damaged ({e}): {_ADVICE}") from None
    return np.asarray(mapped)  # plain: slices of a memmap take microseconds more


def load_array(path: Path, *, mapped: bool = True) -> Array:
    """Return a file's array, read or mapped; `OSError`, or `ValueError` if it is damaged."""
    try:
        array: Array = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    except (EOFError, SyntaxError, TokenError, TypeError, OverflowError, MemoryError) as e:
        raise ValueError(f"no array: {e}") from None  # NumPy reads the header as Python
    return array
