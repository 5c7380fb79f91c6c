"""Main memory of each process that trains: to load, to take a step, to save and to resume.

    python benchmarks/studies/host_memory.py [--processes 1 2 4] [--layers 12] [--hidden 768]

A Qwen2 with random weights, in float32 on the CPU, where weights, gradients and moments lie in main
memory as well: with n processes each has an n-th part. Processes exchange by gloo. For each number
of processes: the most that one of them holds by phase, in MB, without the libraries (the kernel's
VmHWM, set back before each phase; pages of mapped files count).
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

from harness.config import OptimizerConfig
from harness.distributed.process_group import ProcessGroup, torchrun_processes
from harness.model import tiny
from harness.model.packing import Sample
from harness.model.policy import Policy
from harness.runs import checkpoints, training_state
from harness.training import saving
from harness.training.optimizer import make_optimizer

sys.path.insert(0, str(Path(__file__).parents[1]))
from process_memory import fields_of

PHASES = ("load", "step", "save", "resume")
MEGABYTE = 1e6
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Numbers of glibc's options of malloc."""


def make_models(home: Path, *, layers: int, hidden: int, vocabulary: int) -> int:
    """Save a model and a tiny one in `home`; return the number of the first one's weights."""
    _make_model(home / "tiny", layers=1, hidden=64, vocabulary=500)
    return _make_model(home / "model", layers=layers, hidden=hidden, vocabulary=vocabulary)


def _make_model(folder: Path, *, layers: int, hidden: int, vocabulary: int) -> int:
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(0)
    tokenizer = tiny.make_tokenizer(["you are in a corridor"] * 9, 300)
    config = Qwen2Config(
        hidden_size=hidden,
        intermediate_size=-(-hidden * 8 // 3 // 64) * 64,
        num_hidden_layers=layers,
        num_attention_heads=hidden // 64,
        num_key_value_heads=hidden // 64,
        vocab_size=vocabulary,
        tie_word_embeddings=False,
    )
    policy = Policy(Qwen2ForCausalLM(config), tokenizer, "cpu")
    policy.save(folder)
    return sum(weight.numel() for weight in policy.model.parameters())


def peak_of(name: str = "VmHWM") -> float:
    """Return a field of this process's memory in MB."""
    return fields_of(Path("/proc/self/status").read_text())[name] / MEGABYTE


def give_back_freed_memory() -> None:
    """Let glibc return what is freed to the system, so that it does not count as held."""
    libc = ctypes.CDLL(None)
    for option in (_MMAP_THRESHOLD, _TRIM_THRESHOLD):
        libc.mallopt(option, 65536)


def forget_peak() -> None:
    """Let the peak begin anew."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")


def load(folder: Path, processes: ProcessGroup) -> tuple[Policy, torch.optim.Optimizer]:
    """Load a policy as a training run does."""
    policy = Policy.load(str(folder), "cpu" if processes.size == 1 else "meta")
    policy.shard(processes)
    return policy, make_optimizer(policy.model, OptimizerConfig())


def take_step(policy: Policy, optimizer: torch.optim.Optimizer) -> None:
    """Take an optimizer step on a sequence for each process."""
    row = Sample(tuple(range(1, 33)), tuple(range(33, 65)), (0.0,) * 32, 1.0)
    for batch in policy.micro_batches([row] * policy.processes.size, 64):
        logprob, _ = policy.logprobs(batch)
        (-logprob.sum()).backward()
    optimizer.step()
    optimizer.zero_grad()


def cycle(processes: ProcessGroup, folder: Path, run: Path, *, resumes: bool) -> dict[str, float]:
    """Return what this process holds at most in each phase, in MB."""
    found: dict[str, float] = {}
    if resumes:
        checkpoint = processes.run_on_first(lambda: checkpoints.newest(run))
        assert checkpoint is not None
        forget_peak()
        policy, optimizer = load(checkpoint.folder, processes)
        training_state.read(checkpoint.folder, policy, optimizer)
        return {"resume": peak_of()}
    forget_peak()
    policy, optimizer = load(folder, processes)
    found["load"] = peak_of()
    forget_peak()
    take_step(policy, optimizer)
    found["step"] = peak_of()
    forget_peak()
    saving.begin(run, 1, policy, optimizer, keep=1).finish()
    found["save"] = peak_of()
    return found


def measure(processes: ProcessGroup, home: Path, run: str, *, resumes: bool) -> dict[str, float]:
    """Return the most that one of the processes holds for the model `home / "model"` by phase.

    A tiny model goes the same way before, and what is held then is subtracted: the libraries.

    Args:
        processes: All of them call this.
        home: Has the models of `make_models`.
        run: Name of the run's folder there.
        resumes: Measure resuming from the run's checkpoint, not what leads to it.
    """
    torch.set_num_threads(1)
    give_back_freed_memory()
    for part in (False, True) if resumes else (False,):
        cycle(processes, home / "tiny", home / f"{run}-tiny", resumes=part)
    forget_peak()
    base = peak_of("VmRSS")
    found = cycle(processes, home / "model", home / run, resumes=resumes)
    everyone = processes.gather(found)
    return {name: max(one[name] for one in everyone) - base for name in found}


def measured(home: Path, size: int) -> dict[str, float]:
    """Return the most that one of several processes holds by phase, in MB."""
    found: dict[str, float] = {}
    for resumes in ("", "resumes"):
        found |= _in_processes([str(home), f"run-{size}", resumes], size)
    return found


def _in_processes(words: list[str], size: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as home:
        told = Path(home, "told.json")
        call = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        call += ["--nproc-per-node", str(size), __file__, "--worker", *words, str(told)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        subprocess.run(call, check=True, env=environment, stdout=subprocess.DEVNULL)
        found: dict[str, float] = json.loads(told.read_text())
    return found


def main() -> None:
    """Measure, and print a table."""
    if sys.argv[1:2] == ["--worker"]:
        home, run, resumes, told = sys.argv[2:]
        with torchrun_processes() as processes:
            found = measure(processes, Path(home), run, resumes=bool(resumes))
        if processes.is_first:
            Path(told).write_text(json.dumps(found))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--hidden", type=int, default=768)
    parser.add_argument("--vocabulary", type=int, default=27_000)
    given = parser.parse_args()
    size = {"layers": given.layers, "hidden": given.hidden, "vocabulary": given.vocabulary}
    with tempfile.TemporaryDirectory() as home:
        weights = make_models(Path(home), **size)
        print(f"{weights / 1e6:.0f} million weights, {4 * weights / 1e6:.0f} MB; MB by phase")
        print("| processes | " + " | ".join(PHASES) + " |")
        for processes in given.processes:
            measures = measured(Path(home), processes)
            cells = [f"{measures[phase]:.0f}" for phase in PHASES]
            print(f"| {processes} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
