"""Checkpoints are written atomically: after a kill at any moment, a complete one is there.

Each process writes its files; its thread then flushes them and computes digests, while training
may go on. Last, the first process writes the file that makes the folder a checkpoint.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from agentgyms.data import writing
from harness.distributed.joining import is_connection_error
from harness.distributed.process_group import ProcessGroup
from harness.model.policy import Policy
from harness.model.weights.weight_average import WeightAverage
from harness.runs import checkpoints, file_digests, fsync, training_state
from harness.runs.checkpoints import AVERAGE, DESCRIPTION, Checkpoint
from harness.runs.file_digests import FileDigests
from harness.runs.training_state import NOTHING
from harness.types.errors import TrainingError
from harness.types.stateful import Stateful


@dataclass(frozen=True, slots=True)
class Saving:
    """A checkpoint whose files are written, and perhaps not on the disk yet."""

    partial: Path  # the folder until it is complete
    step: int  # completed steps
    processes: ProcessGroup  # all of them save
    digests: Future[FileDigests]  # this process's files, once they are on the disk
    # makes the folder a checkpoint, in the first process
    complete: Callable[[FileDigests], Checkpoint]

    def finish(self) -> Checkpoint:
        """Complete the checkpoint once all files are on the disk; all processes call this.

        Raises `TrainingError` (`ReportedElsewhere` in the other processes) if a file did not reach
        the disk; older checkpoints are unchanged.
        """
        with _reported(self.partial, self.step, self.processes):
            shares = self.processes.gather(self.processes.run_on_all(self.digests.result))
            found = dict(ChainMap(*shares))
            ordered = {name: found[name] for name in sorted(found, key=Path)}
            return self.processes.run_on_first(lambda: self.complete(ordered))


def begin(
    run: Path,
    step: int,
    policy: Policy,
    optimizer: torch.optim.Optimizer,
    annotators: Mapping[str, Stateful] = NOTHING,
    *,
    keep: int,
    keep_best: int = 0,
    best: str = "success",
    validation: Mapping[str, float] | None = None,
    parts: Mapping[str, Stateful] = NOTHING,
    average: WeightAverage | None = None,
) -> Saving:
    """Write the state after `step` steps; `Saving.finish` then removes checkpoints to drop.

    All processes call this, each writes a part, and all must `finish` before the next call. `keep`
    counts the newest checkpoints, `keep_best` the best by the figure `best` of `validation`
    (greater is better, of equals the earlier). The states of `annotators` and `parts` are saved by
    name, the average as another model. Raises `TrainingError` (`ReportedElsewhere` in the other
    processes) if it cannot be written, for instance on a full disk; older checkpoints are
    unchanged.
    """
    root, processes = run / "checkpoints", policy.processes
    partial = root / f".step-{step:06d}.partial"

    def prepare() -> None:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)

    def complete(files: FileDigests) -> Checkpoint:
        saved = _complete(partial, step, validation or {}, files)
        checkpoints.remove_old(root, step, keep, keep_best, best)
        return saved

    with _reported(partial, step, processes):
        processes.run_on_first(prepare)
        policy.save(partial)
        training_state.write(partial, policy, optimizer, annotators, parts)
        if average is not None:
            average.save(partial / AVERAGE)
        names = processes.run_on_first(lambda: file_digests.names_of(partial))
    flushing = ThreadPoolExecutor(1, "checkpoint")
    digests = flushing.submit(file_digests.flushed, partial, processes.share(names))
    flushing.shutdown(wait=False)
    return Saving(partial, step, processes, digests, complete)


def adopt(run: Path, step: int, model: Path, *, keep: int) -> Checkpoint:
    """Make a checkpoint of a model that another engine saved, without a state to resume from.

    `model` is a folder that transformers loads, on the same disk: files are linked, not copied. The
    newest `keep` checkpoints stay. Raises `TrainingError` if it cannot be written.
    """
    root = run / "checkpoints"
    partial = root / f".step-{step:06d}.partial"
    try:
        shutil.rmtree(partial, ignore_errors=True)
        root.mkdir(exist_ok=True)
        shutil.copytree(model, partial, copy_function=os.link)
        files = file_digests.flushed(partial, file_digests.names_of(partial))
        saved = _complete(partial, step, {}, files)
        checkpoints.remove_old(root, step, keep, 0, "success")
    except (OSError, shutil.Error) as e:
        raise TrainingError(f"the model of step {step} cannot be linked in {root}: {e}") from e
    return saved


@contextmanager
def _reported(partial: Path, step: int, processes: ProcessGroup) -> Iterator[None]:
    """Remove the folder after an error, and name the file that cannot be written."""
    try:
        yield
    except Exception as e:  # the libraries that write the files raise errors of any kind
        if not processes.is_first or (isinstance(e, RuntimeError) and is_connection_error(e)):
            raise
        if not (partial / DESCRIPTION).exists():
            shutil.rmtree(partial, ignore_errors=True)
        raise TrainingError(
            f"the checkpoint of step {step} cannot be written to {partial.parent}: {e}; make room "
            "there (see checkpoint.keep and checkpoint.keep_best)"
        ) from e


def _complete(
    partial: Path, step: int, validation: Mapping[str, float], files: FileDigests
) -> Checkpoint:
    fsync.flush_folders(partial)
    known = {name: value for name, value in validation.items() if math.isfinite(value)}
    described = {"step": step, "validation": known, "files": files}
    writing.write(partial / DESCRIPTION, json.dumps(described, indent=1))
    return checkpoints.renamed(Checkpoint(partial, step, known))
