"""The training state beside the weights: optimizer, annotators and random states.

One file has it, `trainer.pt`. Several processes write their sharded tensors into further files, in
the folder `trainer`, and that file then maps tensors to files.
"""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from harness.distributed import shared_writing
from harness.distributed.fsdp import load_optimizer_state, optimizer_state
from harness.distributed.process_group import ProcessGroup
from harness.model.policy import Policy
from harness.types.errors import CheckpointError
from harness.types.stateful import Stateful

NOTHING: Final[dict[str, Stateful]] = {}
_FILE: Final = "trainer.pt"
_FOLDER: Final = "trainer"
_SHARED: Final = "shared"
"""Key of the places of tensors that stand in other files: name there, file, path in the state."""

_Path = tuple[str | int, ...]
"""Keys that lead to a value in nested dictionaries and lists."""

_UNUSABLE: Final = (
    OSError,
    RuntimeError,
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    EOFError,
    SafetensorError,
    pickle.UnpicklingError,
)
"""Errors of a damaged file, or one of something else."""


def write(
    folder: Path,
    policy: Policy,
    optimizer: torch.optim.Optimizer,
    annotators: Mapping[str, Stateful] = NOTHING,
    parts: Mapping[str, Stateful] = NOTHING,
) -> None:
    """Write the state into a checkpoint's folder; the policy writes its weights itself.

    All processes call this. Sharded tensors are written by all of them, the rest by the first one.
    Any number of processes reads the same state, except for random states, one for each process.
    """
    state: dict[str, Any] = {
        "optimizer": optimizer_state(optimizer, policy.model.named_parameters()),
        "random": policy.processes.gather(_random_states(policy.device)),
        "annotators": {name: annotator.state_dict() for name, annotator in annotators.items()},
        "parts": {name: part.state_dict() for name, part in parts.items()},
    }
    if policy.processes.size > 1:
        state[_SHARED] = _write_sharded(folder, state, policy.processes)
        state = _without_sharded(state)
    policy.processes.run_on_first(lambda: torch.save(state, folder / _FILE))


def _write_sharded(
    folder: Path, state: Mapping[str, Any], processes: ProcessGroup
) -> list[tuple[str, str, _Path]]:
    """Write the sharded tensors of a state; return name, file and path of each."""
    found = dict(_sharded(state))
    names = {"/".join(map(str, path)): path for path in found}
    tensors = {name: found[path] for name, path in names.items()}
    tied: dict[int, list[str]] = {}
    for name, tensor in tensors.items():
        tied.setdefault(id(tensor), []).append(name)

    def save(number: int, count: int, own: dict[str, torch.Tensor]) -> None:
        once = {tied[id(tensors[name])][0]: tensor for name, tensor in own.items()}
        (folder / _FOLDER).mkdir(exist_ok=True)
        save_file(once, folder / _FOLDER / shared_writing.name_of("state", number, count))

    files = shared_writing.write(tensors, list(tied.values()), processes, save)
    return [
        (tied[id(tensors[name])][0], shared_writing.name_of("state", i, len(files)), names[name])
        for i, file in enumerate(files)
        for name in file
    ]


def _sharded(value: Any, path: _Path = ()) -> Iterator[tuple[_Path, Any]]:
    """Yield path and tensor of everything sharded in nested dictionaries and lists."""
    if hasattr(value, "full_tensor"):
        yield path, value
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from _sharded(one, (*path, key))
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from _sharded(one, (*path, number))


def _without_sharded(value: Any) -> Any:
    """Return nested dictionaries and lists with None in place of sharded tensors."""
    if hasattr(value, "full_tensor"):
        return None
    if isinstance(value, Mapping):
        return {key: _without_sharded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_without_sharded(one) for one in value]
    return value


def load(folder: Path, place: torch.device | str = "cpu", *, mapped: bool = False) -> Any:
    """Return the state that `write` wrote, on `place`; `mapped` files are read when used."""
    state = torch.load(folder / _FILE, map_location=place, weights_only=True, mmap=mapped)
    by_file: dict[str, list[tuple[str, _Path]]] = {}
    for name, file, path in state.pop(_SHARED, ()):
        by_file.setdefault(file, []).append((name, tuple(path)))
    for file, entries in by_file.items():
        with safe_open(folder / _FOLDER / file, "pt") as opened:
            found = {name: opened.get_tensor(name) for name, _ in entries}
        for name, path in entries:
            tensor = found[name] if mapped else found[name].to(place, copy=True)
            reduce(getitem, path[:-1], state)[path[-1]] = tensor
    return state


def read(
    folder: Path,
    policy: Policy,
    optimizer: torch.optim.Optimizer,
    annotators: Mapping[str, Stateful] = NOTHING,
    parts: Mapping[str, Stateful] = NOTHING,
) -> None:
    """Restore all but the policy.

    Raises `CheckpointError` if the file is missing, damaged or another model's.
    """
    device, processes = policy.device, policy.processes
    with _readable(folder / _FILE):
        alone = processes.size == 1  # several processes map the file, and read their own rows
        place = device if alone and policy.layout.offload is None else "cpu"
        state = load(folder, place, mapped=not alone)
        load_optimizer_state(optimizer, policy.model.named_parameters(), state["optimizer"])
        for name, annotator in annotators.items():
            annotator.load_state_dict(state["annotators"][name])
        for name, part in parts.items():
            part.load_state_dict(state["parts"][name])
        by_rank = state["random"]
        if processes.rank < len(by_rank):
            _restore_random_states(by_rank[processes.rank], device)


def read_annotator(folder: Path, name: str, annotator: Stateful) -> None:
    """Restore one annotator alone; errors as in `read`."""
    with _readable(folder / _FILE):
        state = torch.load(folder / _FILE, map_location="cpu", weights_only=True, mmap=True)
        annotator.load_state_dict(state["annotators"][name])


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except _UNUSABLE as e:
        reason = " ".join(str(e).split())  # torch's words may take many lines
        raise CheckpointError(f"{path} cannot be used: {reason:.150}") from e


def _random_states(device: torch.device) -> dict[str, Any]:
    version, internal, gauss = random.getstate()
    name, keys, *rest = np.random.get_state()  # noqa: NPY002 (others may use it)
    states: dict[str, Any] = {
        "python": [version, list(internal), gauss],
        "numpy": [name, torch.from_numpy(np.asarray(keys).astype(np.int64)), *rest],
        "torch": torch.get_rng_state(),
    }
    if device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(device)
    return states


def _restore_random_states(states: dict[str, Any], device: torch.device) -> None:
    version, internal, gauss = states["python"]
    random.setstate((version, tuple(internal), gauss))
    name, keys, *rest = states["numpy"]
    np.random.set_state((name, keys.cpu().numpy().astype(np.uint32), *rest))  # noqa: NPY002
    torch.set_rng_state(states["torch"].cpu())
    if device.type == "cuda" and "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"].cpu(), device)
