"""Truth sets: a measured truth in one file. It scores estimators without model or environment."""

from __future__ import annotations

import json
import math
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from lzma import LZMAError
from pathlib import Path
from tokenize import TokenError
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from agentgyms.core.errors import not_written, path_end
from agentgyms.data import writing
from agentgyms.data.users_files import parse_json
from harness.audit.truth import Truth, TruthOptions
from harness.credit.table import TurnTable
from harness.rollouts.continuations import Cost
from harness.types.arrays import Floats
from harness.types.errors import ConfigError, TableError

FORMAT: Final = "agentgyms-truth-1"
_NAMES: Final = ("state_key", "next_state_key", "action_key", "text")
_NUMBERS: Final = ("rollout", "group", "turn", "reward", "success", "valid", "failed")
_HEADERS: Final = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_SCORE: Final = "process_reward"
"""A column of the turns that a reward model filled, if there was one."""
_OPTIONAL: Final[dict[str, Any]] = {
    "taken": np.float64,
    "equal": np.float64,
    "known": np.int64,
    "sketch": np.float16,
}
"""Columns of the truth that not every policy has, and their types."""
_DAMAGES: Final = (
    *(ValueError, KeyError, TypeError, IndexError, AttributeError, EOFError),
    *(TableError, ConfigError, zipfile.BadZipFile, zlib.error, LZMAError),
    *(SyntaxError, TokenError, MemoryError, OverflowError, NotImplementedError, RuntimeError),
)
"""Errors of a stranger's file; NumPy reads an array's header as Python."""
_LARGEST: Final = 1 << 28
"""Bytes that the arrays of a file may have together."""
_MOST_ARRAYS: Final = 64


@dataclass(frozen=True, slots=True)
class TruthSet:
    """A measured truth and its origin."""

    truth: Truth
    tasks: tuple[str, ...]  # task of each group
    # environment, data version, policy and seed, as JSON
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Digest of turns, returns and options; equal for equal content."""
        found = blake2b(json.dumps(_told(self.truth.options), sort_keys=True).encode())
        for name, array in sorted(_arrays(self).items()):
            found.update(f"{name} {array.dtype.str} {array.shape}".encode() + array.tobytes())
        return found.hexdigest()[:16]


def write(path: Path, truth_set: TruthSet) -> None:
    """Write a truth set as a file, equal sets with equal bytes; raise `BadOption` if it cannot."""
    head = {
        "format": FORMAT,
        "options": _told(truth_set.truth.options),
        "cost": asdict(truth_set.truth.cost),
        "about": dict(truth_set.about),
        "digest": truth_set.digest,
    }
    arrays = _arrays(truth_set) | {"head": _bytes_of(head)}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with writing.replacing_named(path) as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)
    except OSError as e:
        raise not_written(path, e) from e


def _told(options: TruthOptions) -> dict[str, Any]:
    """Return the options as files have them: those of measured truth say nothing of `exact`."""
    told = asdict(options)
    return told if options.exact else {k: v for k, v in told.items() if k != "exact"}


def read(path: Path) -> TruthSet:
    """Return a truth set. Raises `ConfigError` if the file cannot be read or is damaged."""
    try:
        with zipfile.ZipFile(path) as file:
            members = file.infolist()
            size = sum(one.file_size for one in members)
            if size > _LARGEST or len(members) > _MOST_ARRAYS:
                raise ValueError(f"it has {len(members)} arrays of {size} bytes")
            found = {one.filename.removesuffix(".npy"): _array(file, one) for one in members}
        truth_set, head = _from_arrays(found)
    except OSError as e:
        raise ConfigError(f"{path_end(path)} cannot be read: {e.strerror or e}") from e
    except _DAMAGES as e:
        raise ConfigError(f"{path_end(path)} is no truth set, or damaged: {e!s:.100}") from e
    if head.get("digest") != truth_set.digest:
        raise ConfigError(f"{path_end(path)} is damaged: its digest is another one")
    return truth_set


def _array(file: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    """Return an array, whose header must agree with its size before memory is taken for it."""
    with file.open(member) as raw:
        version = np.lib.format.read_magic(raw)
        if version not in _HEADERS:
            raise ValueError(f"an array of version {version}")
        shape, _, kind = _HEADERS[version](raw)
        if kind.kind not in "biuf":  # others may have no size, and then any length
            raise ValueError(f"an array of {kind}")
        if raw.tell() + math.prod(shape) * kind.itemsize != member.file_size:
            raise ValueError(f"an array of shape {shape!s:.40} has {member.file_size} bytes")
    with file.open(member) as raw:
        array: NDArray[Any] = np.lib.format.read_array(raw, allow_pickle=False)
        return array


def _arrays(truth_set: TruthSet) -> dict[str, NDArray[Any]]:
    truth = truth_set.truth
    returns = truth.returns
    arrays = {
        "returns": returns.astype(_smallest_type(returns)),
        "tasks": _bytes_of(list(truth_set.tasks)),
    }
    numbers = {name: getattr(truth.turns, name) for name in _NUMBERS}
    numbers |= {name: own for name in _OPTIONAL if (own := getattr(truth, name)) is not None}
    if truth.turns.process_reward is not None:
        numbers[_SCORE] = truth.turns.process_reward
    for name, column in numbers.items():
        arrays[name] = column.astype(np.int32) if column.dtype == np.int64 else column
    columns = [getattr(truth.turns, name) for name in _NAMES]
    words = sorted({str(word) for column in columns for word in column})
    number = {word: i for i, word in enumerate(words)}
    arrays["words"] = _bytes_of(words)
    for name, column in zip(_NAMES, columns, strict=True):
        arrays[name] = np.array([number[str(word)] for word in column], np.int32)
    return arrays


def _smallest_type(returns: Floats) -> type[np.generic]:
    for kind in (np.uint8, np.float32):
        with np.errstate(invalid="ignore", over="ignore"):
            if np.array_equal(returns.astype(kind).astype(np.float64), returns):
                return kind
    return np.float64


def _from_arrays(found: Mapping[str, NDArray[Any]]) -> tuple[TruthSet, dict[str, Any]]:
    head = _json(found["head"])
    if head["format"] != FORMAT:
        raise ValueError(f"its format is {head['format']!r:.40}, expected {FORMAT}")
    words = _json(found["words"])
    names = {name: [words[i] for i in found[name]] for name in _NAMES}
    numbers = {name: found[name] for name in (*_NUMBERS, _SCORE) if name in found or name != _SCORE}
    turns = TurnTable.from_columns(**numbers, **names)
    returns = found["returns"].astype(np.float64)
    options = TruthOptions(**head["options"])
    if returns.shape != (len(turns), options.continuations) or not np.isfinite(returns).all():
        raise ValueError(f"returns of shape {returns.shape} for {len(turns)} turns")
    optional = {name: found[name].astype(_OPTIONAL[name]) for name in _OPTIONAL if name in found}
    if any(column.shape[:1] != (len(turns),) for column in optional.values()):
        raise ValueError(f"columns of other lengths than {len(turns)} turns")
    sketch = optional.get("sketch")
    fits = sketch is None or (sketch.ndim == 2 and np.isfinite(sketch).all())
    if ("taken" in optional) != ("equal" in optional) or not fits:
        raise ValueError("its probabilities or gradients are not whole")
    truth = Truth(turns, returns, options, Cost(**head["cost"]), **optional)
    tasks = tuple(map(str, _json(found["tasks"])))
    return TruthSet(truth, tasks, head["about"]), head


def _bytes_of(value: Any) -> NDArray[np.uint8]:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)


def _json(found: NDArray[Any]) -> Any:
    return parse_json(found.tobytes().decode("utf-8", "surrogatepass"))
