"""Weights in safetensors files, read one at a time or in parts: by the processes that shard them.

A model for several processes is made without memory for its weights, on torch's device "meta". Each
process then reads its own rows of each weight, so no process has the whole model in main memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import torch

from harness.model.hub import INDEX, ONE_FILE

META: Final = "meta"
"""Device of a model whose weights are not read yet."""


@dataclass(slots=True)
class StoredWeights:
    """The weights of a folder by the names that they have in a model.

    Attributes:
        files: File of each name, and the name there; tied weights have one there.
        bytes_read: Bytes that were read so far.
    """

    files: Mapping[str, tuple[Path, str]]
    bytes_read: int = field(default=0, compare=False)

    @classmethod
    def of(cls, folder: Path, model: Any) -> StoredWeights | None:
        """Return the weights of a model, or None if its files have other names or shapes.

        Files of some architectures have a tensor for each expert, or names of an older version;
        transformers converts them when it loads the whole model.
        """
        files = {name: (file, name) for name, file in _files(folder).items()}
        weights = dict(model.named_parameters(remove_duplicate=False))
        place = {id(weights[name]): files[name] for name in weights if name in files}
        if any(id(weight) not in place for weight in weights.values()):
            return None
        found = cls({name: place[id(weight)] for name, weight in weights.items()})
        alike = all(found._shape(name) == tuple(weights[name].shape) for name in weights)
        return found if alike else None

    def read(self, name: str, start: int = 0, end: int | None = None) -> torch.Tensor:
        """Return rows of a weight on the CPU, in the type of the file."""
        from safetensors import safe_open

        path, own = self.files[name]
        with safe_open(path, "pt") as file:
            rows: torch.Tensor = file.get_slice(own)[start:end]
        self.bytes_read += rows.nbytes
        return rows

    def state(self, model: Any) -> dict[str, torch.Tensor]:
        """Return all weights in the types of a model."""
        return {name: self.read(name).to(own.dtype) for name, own in model.named_parameters()}

    def _shape(self, name: str) -> tuple[int, ...]:
        from safetensors import safe_open

        path, own = self.files[name]
        with safe_open(path, "pt") as file:
            return tuple(file.get_slice(own).get_shape())


def _files(folder: Path) -> dict[str, Path]:
    """Return the file of each tensor in a folder; none if a file is missing."""
    from safetensors import safe_open

    if (folder / INDEX).is_file():
        index = json.loads((folder / INDEX).read_text(encoding="utf-8"))["weight_map"]
        placed = {name: folder / file for name, file in index.items()}
        return placed if all(path.is_file() for path in placed.values()) else {}
    with safe_open(folder / ONE_FILE, "pt") as file:
        return dict.fromkeys(file.keys(), folder / ONE_FILE)


@contextmanager
def without_memory() -> Iterator[None]:
    """Make modules whose parameters have no memory; buffers are made as usual."""
    module_class: Any = torch.nn.Module
    usual = module_class.register_parameter

    def register(module: torch.nn.Module, name: str, given: torch.nn.Parameter | None) -> None:
        if given is not None and given.device.type != META:
            given = torch.nn.Parameter(given.detach().to(META), requires_grad=given.requires_grad)
        usual(module, name, given)

    module_class.register_parameter = register
    try:
        yield
    finally:
        module_class.register_parameter = usual
