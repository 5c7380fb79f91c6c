"""Weights in safetensors files, read and written in parts by the processes that shard them.

A model for several processes is made on torch's device "meta". Each process reads its own rows and
writes some files with whole weights, so none has the whole model in main memory.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import torch

from harness.distributed import fsdp, shared_writing
from harness.distributed.process_group import ProcessGroup
from harness.model.hub import INDEX, ONE_FILE
from harness.model.weights import strict_load
from harness.model.weights.tensor_files import SAFE, StoredTensor

META: Final = "meta"
"""Device of a model before its weights are read."""

_BLOCK: Final = re.compile(r".*?\.\d+(?=\.)")
"""Prefix of the names of one layer's weights."""


@dataclass(slots=True)
class StoredWeights:
    """The weights of a folder by the names that they have in a model."""

    # File of each name, and the name there; tied weights have one there.
    files: Mapping[str, tuple[Path, str]]
    bytes_read: int = field(default=0, compare=False)

    @classmethod
    def of(cls, tensors: Mapping[str, StoredTensor], model: Any) -> StoredWeights | None:
        """Return the weights of a model, or None if it can only be loaded whole."""
        if not _are_own(model, tensors):
            return None
        weights = dict(model.named_parameters(remove_duplicate=False))
        place = {id(weights[n]): (tensors[n].file, n) for n in weights if n in tensors}
        return cls({name: place[id(weight)] for name, weight in weights.items()})

    def read(self, name: str, start: int = 0, end: int | None = None) -> torch.Tensor:
        """Return rows of a weight on the CPU, in the file's type; refuse NaN and infinity."""
        from safetensors import safe_open

        path, own = self.files[name]
        with safe_open(path, "pt") as file:
            rows: torch.Tensor = file.get_slice(own)[start:end]
        self.bytes_read += rows.nbytes
        strict_load.check_finite(rows, f"{own} in {path.name}")
        return rows

    def state(self, model: Any) -> dict[str, torch.Tensor]:
        """Return all weights in the types of a model."""
        return {name: self.read(name).to(own.dtype) for name, own in model.named_parameters()}


def _are_own(model: Any, tensors: Mapping[str, StoredTensor]) -> bool:
    """Return whether files have a model's weights as it has them, by name, size and type."""
    own = model.state_dict(keep_vars=True)
    weights = dict(model.named_parameters(remove_duplicate=False))
    stored = {id(own[name]) for name in own.keys() & tensors.keys()}
    if own.keys() != weights.keys() or any(id(one) not in stored for one in own.values()):
        return False  # a buffer may be in the files, too
    for name in own.keys() & tensors.keys():
        one = tensors[name]
        if one.shape != tuple(own[name].shape) or not one.is_float or one.file.suffix != SAFE:
            return False
    return _ignored(model, set(tensors) - own.keys()) and _tied_alike(model, tensors)


def _ignored(model: Any, names: set[str]) -> bool:
    """Return whether transformers expects all of these weights in files, and does not read them."""
    found = SimpleNamespace(missing_keys=set(), unexpected_keys=set(names))
    model._adjust_missing_and_unexpected_keys(found)
    return not found.unexpected_keys


def _tied_alike(model: Any, tensors: Mapping[str, StoredTensor]) -> bool:
    """Return whether weights that a model ties have equal values where files have both."""
    from safetensors import safe_open

    pairs = model.get_expanded_tied_weights_keys(all_submodels=True).items()
    for names in ((a, b) for a, b in pairs if a in tensors and b in tensors):
        found = []
        for name in names:
            with safe_open(tensors[name].file, "pt") as file:
                found.append(file.get_tensor(name))
        if not torch.equal(found[0].to(model.dtype), found[1].to(model.dtype)):
            return False
    return True


@contextmanager
def without_memory() -> Iterator[None]:
    """Make modules with parameters without memory; buffers are made as usual."""
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


def save_parts(model: Any, folder: Path, processes: ProcessGroup) -> None:
    """Save a sharded model in transformers' format; all processes call this.

    A layer's weights stand in one file, because transformers stores some of them together. The
    folder is created. Raises `TrainingError` if a process cannot write.
    """
    state = fsdp.own_state(model)

    def save(number: int, count: int, weights: dict[str, torch.Tensor]) -> None:
        part = folder / f".part-{number}"
        with _saving_in_any_process(model):
            model.save_pretrained(part, state_dict=weights, max_shard_size="999GB")
        (part / ONE_FILE).rename(folder / shared_writing.name_of("model", number, count))
        if number == 0:  # the model's description
            for file in part.iterdir():
                file.rename(folder / file.name)
        shutil.rmtree(part)

    files = shared_writing.write(state, _blocks(state), processes, save)
    processes.run_on_first(lambda: _join_parts(folder, len(files)))


@contextmanager
def _saving_in_any_process(model: Any) -> Iterator[None]:
    """Let a process other than the first one save a model, which transformers 5 leaves out."""
    model.should_save_on_this_rank = lambda is_main_process: is_main_process
    try:
        yield
    finally:
        del model.should_save_on_this_rank


def _blocks(state: Mapping[str, torch.Tensor]) -> list[list[str]]:
    """Return names in groups: those of a layer, and those of one tensor."""
    groups: dict[str, list[str]] = {}
    group_of: dict[int, str] = {}
    for name, weight in state.items():
        found = _BLOCK.match(name)
        key = group_of.setdefault(id(weight), found[0] if found else name)
        groups.setdefault(key, []).append(name)
    return list(groups.values())


def _join_parts(folder: Path, count: int) -> None:
    """Write the list of the weights in all files."""
    from safetensors import safe_open

    placed, total = {}, 0
    for number in range(count):
        name = shared_writing.name_of("model", number, count)
        with safe_open(folder / name, "pt") as file:
            placed.update(dict.fromkeys(file.keys(), name))
        total += (folder / name).stat().st_size
    index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(placed.items()))}
    (folder / INDEX).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")
