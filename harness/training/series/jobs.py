"""Runs of a series in processes of their own, several at a time; `main` is such a process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import torch

from harness import config as configs
from harness.config import Config
from harness.distributed.parent import follow_parent
from harness.distributed.process_group import SINGLE_PROCESS, ProcessGroup
from harness.distributed.signals import StopSignal
from harness.inference.completers import garbage
from harness.training import setup
from harness.types import plugins
from harness.types.errors import TrainingError, TrainingStopped

_TICK_S: Final = 0.2
_MOST_SHOWN: Final = 2000
"""Most characters of a failed run's last words."""
_STOPPED: Final = tuple(128 + number for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP))


@dataclass(frozen=True, eq=False)
class Child:
    """A run that a process of its own trains."""

    config: Config
    folder: Path
    is_begun: bool  # it is resumed
    line: str  # its announcement


def train_one(
    config: Config,
    folder: Path,
    is_begun: bool,
    processes: ProcessGroup = SINGLE_PROCESS,
    announce: Callable[[str], None] = print,
) -> None:
    """Train a run from its start or its last checkpoint on, in this process."""
    if is_begun:
        setup.resume(folder, processes, announce).run()
    else:
        setup.start(config, processes, announce).run()
    garbage.collect()  # memory for the next run
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def run_children(
    children: Sequence[Child],
    jobs: int,
    announce: Callable[[str], None],
    ended: Callable[[Path], None],
) -> None:
    """Train runs in at most `jobs` processes at a time; `ended` gets the folder of each.

    Raises:
        TrainingStopped: This process got a signal; the running ones have saved their last step.
        TrainingError: A run failed; those beside it were trained to their ends.
    """
    waiting, running = list(children), dict[Child, _Process]()
    failed: list[str] = []
    stop, is_told = StopSignal(None), False
    with ExitStack() as stack:
        stack.enter_context(stop.listening())
        while running or (waiting and not failed and not stop.number):
            while waiting and len(running) < jobs and not failed and not stop.number:
                child = waiting.pop(0)
                announce(child.line)
                running[child] = stack.enter_context(_Process(child, jobs))
            if stop.number and not is_told:
                is_told = True
                for process in running.values():
                    process.handle.terminate()
            for child in [one for one, process in running.items() if process.has_ended()]:
                process = running.pop(child)
                if process.handle.returncode == 0:
                    ended(child.folder)
                elif process.handle.returncode not in _STOPPED or not stop.number:
                    failed.append(f"{child.folder}: {process.last_words()}")
            time.sleep(_TICK_S if running else 0.0)
    if failed:
        raise TrainingError("\n".join([*failed, "the same command goes on with the other runs"]))
    if stop.number:
        raise TrainingStopped("the same command goes on with the runs", stop.number)


class _Process:
    """A process that trains a run; leaving the context kills it if it still runs."""

    def __init__(self, child: Child, jobs: int) -> None:
        self._output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (until __exit__)
        # A share of the cores each; a setting `run.threads` counts more.
        threads = str(max(1, torch.get_num_threads() // jobs))
        self.handle = subprocess.Popen(
            [sys.executable, "-c", f"from {__name__} import main; main()"],
            stdin=subprocess.PIPE,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            env={"OMP_NUM_THREADS": threads, **os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            start_new_session=True,  # Ctrl-C reaches this process, which passes it on
        )
        described = [configs.to_dict(child.config), str(child.folder), child.is_begun]
        assert self.handle.stdin is not None
        with self.handle.stdin as pipe:
            pipe.write(json.dumps(described).encode())

    def __enter__(self) -> _Process:
        return self

    def __exit__(self, *_: object) -> None:
        if self.handle.poll() is None:
            self.handle.kill()
            self.handle.wait()
        self._output.close()

    def has_ended(self) -> bool:
        return self.handle.poll() is not None

    def last_words(self) -> str:
        self._output.seek(0)
        text = self._output.read().decode(errors="replace")[-_MOST_SHOWN:].strip()
        return f"{text} (status {self.handle.returncode})"


def main() -> None:
    """Train the run that standard input describes; the status is that of `harness train`."""
    follow_parent()
    values, folder, is_begun = json.loads(sys.stdin.read())
    plugins.load(values["run"]["plugins"])
    try:
        train_one(configs.from_dict(values), Path(folder), is_begun)
    except TrainingStopped as e:
        sys.exit(e.exit_code)
