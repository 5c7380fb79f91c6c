"""Tensors of all processes as files: each process gathers its part of them in full and writes it.

Processes write at the same time; each holds one file of about `FILE_BYTES` in main memory. Every
tensor stands whole in one file, so the files do not depend on the sharding.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import torch

from harness.distributed.fsdp import full_tensor
from harness.distributed.process_group import ProcessGroup

FILE_BYTES: Final = 2**30
"""Bytes of a file, unless a single tensor is larger or tensors that belong together are."""


def write(
    tensors: Mapping[str, torch.Tensor],
    groups: Sequence[Sequence[str]],  # names of tensors that have to be in one file
    processes: ProcessGroup,
    # Called with a file's number, the number of files, and the full tensors on the CPU.
    save: Callable[[int, int, dict[str, torch.Tensor]], None],
) -> list[list[str]]:
    """Write tensors to files; all processes call this with the same names.

    A name that is the same tensor as another one of its group stays the same tensor. Returns the
    names of the tensors in each file. Raises `TrainingError` if a process could not write; see
    `ProcessGroup.gather_or_raise`.
    """
    files = _files(tensors, groups, processes.size)
    error: Exception | None = None
    for first in range(0, len(files), processes.size):  # a file for each process
        own: dict[str, torch.Tensor] = {}
        for rank, names in enumerate(files[first : first + processes.size]):
            found = _gathered(tensors, names, keep=rank == processes.rank and error is None)
            own = found or own
        try:
            if own:
                save(first + processes.rank, len(files), own)
        except Exception as e:  # the others wait for this process in collectives
            error = e
    processes.gather_or_raise(None, error)
    return files


def _gathered(
    tensors: Mapping[str, Any], names: Sequence[str], *, keep: bool
) -> dict[str, torch.Tensor]:
    """Gather tensors in all processes; return them in one that keeps them."""
    kept: dict[int, torch.Tensor] = {}
    for name in names:
        own = tensors[name]
        if id(own) not in kept:
            found = full_tensor(own)
            kept[id(own)] = found.detach().cpu().contiguous() if keep else torch.empty(0)
    return {name: kept[id(tensors[name])] for name in names} if keep else {}


def _files(
    tensors: Mapping[str, torch.Tensor], groups: Sequence[Sequence[str]], processes: int
) -> list[list[str]]:
    """Return the names of each file, of about equal size: largest first, into the smallest file."""
    sizes = [sum({id(tensors[n]): tensors[n].nbytes for n in group}.values()) for group in groups]
    rounds = max(1, -(-sum(sizes) // (processes * FILE_BYTES)))
    files: list[list[str]] = [[] for _ in range(processes * rounds)]
    smallest = [(0, number) for number in range(len(files))]
    for i in sorted(range(len(groups)), key=lambda i: (-sizes[i], i)):
        size, number = heapq.heappop(smallest)
        files[number] += groups[i]
        heapq.heappush(smallest, (size + sizes[i], number))
    return [names for names in files if names]


def name_of(stem: str, number: int, count: int) -> str:
    """Return the name of a file as transformers names the parts of a model."""
    return f"{stem}-{number + 1:05d}-of-{count:05d}.safetensors"
