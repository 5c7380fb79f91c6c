"""The tensors in a model's files by name, read from headers without the tensors themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final
from zipfile import is_zipfile

import torch

from harness.model.hub import INDEX, ONE_FILE, PICKLE, PICKLE_INDEX
from harness.types.errors import ConfigError
from harness.types.json_files import read_object

SAFE: Final = ".safetensors"
_MOST: Final = 70
"""Characters of a name that an error repeats."""

_FLOATS: Final = frozenset(
    {"F64", "F32", "F16", "BF16", "float64", "float32", "float16", "bfloat16"}
)
"""Types of weights, as safetensors and torch name them."""


class RefusedWeightsError(ConfigError):
    """Files with weights that are not, or not surely, the model's."""


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor in a file."""

    file: Path
    shape: tuple[int, ...]
    kind: str  # the name of its type, in safetensors' words or torch's

    @property
    def is_float(self) -> bool:
        """Whether it is of a type that weights have."""
        return self.kind in _FLOATS


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The files of a folder from which transformers loads a model, and the list that names them."""

    files: tuple[Path, ...] = ()
    index: str = ""
    listed: Mapping[str, str] = field(default_factory=dict)


def _chosen(folder: Path) -> _Chosen:
    for one, index in ((ONE_FILE, INDEX), (PICKLE, PICKLE_INDEX)):
        listed = _listed(folder / index) if (folder / index).is_file() else {}
        files = sorted(set(listed.values()))
        if not (folder / one).is_file():
            if listed:
                return _Chosen(tuple(folder / file for file in files), index, listed)
        elif files in ([], [one]):
            return _Chosen((folder / one,), index, listed)
        else:
            raise RefusedWeightsError(
                f"it holds two models, in {one} and in the files that {index} lists: delete one of "
                "them"
            )
    return _Chosen()


def is_complete(folder: Path) -> bool:
    """Return whether a folder has all files that it lists."""
    return all(path.is_file() for path in _chosen(folder).files)


def read(folder: Path) -> dict[str, StoredTensor]:
    """Return the tensors of a folder's model by their names in the files; none if it has none."""
    chosen, found = _chosen(folder), dict[str, StoredTensor]()
    for path in chosen.files:
        if not path.is_file():
            raise RefusedWeightsError(
                f"{chosen.index} names {path.name:.{_MOST}}, which is missing: copy that file too"
            )
        for key, tensor in tensors_in(path).items():
            if key in found:
                raise twice(key, found[key], key, tensor)
            found[key] = tensor
    for key, file in chosen.listed.items():
        if key not in found or found[key].file != folder / file:
            raise RefusedWeightsError(
                f"{chosen.index} lists {key:.{_MOST}} in {file:.{_MOST}}, which does not have it: "
                "copy the files anew"
            )
    return found


def twice(key: str, one: StoredTensor, again: str, other: StoredTensor) -> RefusedWeightsError:
    """Return the error for two tensors that are one weight."""
    both = f"{one.file.name} and {other.file.name}" if one.file != other.file else one.file.name
    named = f"{key!r:.{_MOST}}" if key == again else f"{key!r:.{_MOST}} and {again!r:.{_MOST}}"
    return RefusedWeightsError(f"{named} in {both} are one weight: delete one of the two")


def _listed(index: Path) -> dict[str, str]:
    """Return the file of each tensor in a list of files."""
    listed: Any = read_object(index, RefusedWeightsError).get("weight_map")
    if not isinstance(listed, dict) or not all(type(file) is str for file in listed.values()):
        raise RefusedWeightsError(f"{index.name} is damaged: it maps no names to files")
    for file in set(listed.values()):
        place = PurePosixPath(file)
        if place.is_absolute() or ".." in place.parts or not place.name:
            raise RefusedWeightsError(
                f"{index.name} names {file!r:.{_MOST}}, which is outside its folder: move that "
                "file into the folder and name it there"
            )
    return listed


def tensors_in(path: Path) -> Mapping[str, StoredTensor]:
    """Return the tensors of one file by name."""
    try:
        if path.suffix == SAFE:
            return dict(_safe_tensors(path))
        mapped = is_zipfile(path)
        state = torch.load(path, map_location="meta", weights_only=True, mmap=mapped or None)
        return {
            key: StoredTensor(path, tuple(value.shape), str(value.dtype).removeprefix("torch."))
            for key, value in state.items()
            if isinstance(value, torch.Tensor)
        }
    except Exception as e:  # of damaged files, torch raises errors of any kind
        reason = " ".join(str(e).split())[:_MOST] or type(e).__name__
        raise RefusedWeightsError(f"{path.name} is damaged ({reason}): copy it anew") from e


def _safe_tensors(path: Path) -> Iterable[tuple[str, StoredTensor]]:
    from safetensors import safe_open

    with safe_open(path, "pt") as file:
        for key in file.keys():  # noqa: SIM118 (it has no iterator)
            part = file.get_slice(key)
            yield key, StoredTensor(path, tuple(part.get_shape()), part.get_dtype())
