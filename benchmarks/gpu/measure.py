"""Training on one GPU: what it takes, and whether it agrees with itself. At most 20 minutes.

    AGENTGYMS_TRL_PYTHON=.venv-trl/bin/python python benchmarks/gpu/measure.py [--output FOLDER] \
        [--minutes 20] [--only PART] [--small]

Models have the shapes of Qwen2.5-0.5B, 1.5B and 7B (with LoRA) and Qwen3-1.7B, and random weights;
their tokenizer is made of ALFWorld's generated texts. Nothing is downloaded. Each part has a
process of its own, so that one which fails or runs out of memory leaves the others alone:

- machine: operations per second of a product of large matrices in bfloat16: the peak of MFU.
- speed of each model: tokens per second of rollouts with `hf`, rescoring, and updates, padded and
  packed; MFU; the memory of playing and learning beside what the dry run plans.
- run: five steps of GiGPO on ALFWorld after a warm start; the last checkpoint is deleted, and the
  run goes on from the one before.
- agreement of each model that is trained whole: log-probabilities and gradients in mixed precision
  beside float32.
- trl: the update beside TRL's GRPOTrainer on the same sequences, where TRL is installed.
- vllm: tokens per second of rollouts, where vLLM is installed.

`gpu.json` in FOLDER is written after every part, `gpu.md` has the tables of docs/figures.md. With
`--small` all of it is done with shrunk models, also on a CPU: a rehearsal, whose figures tell
nothing. The exit code is 1 if a part failed.
"""

from __future__ import annotations

import argparse
import functools
import json
import logging
import multiprocessing
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

sys.path.append(str(Path(__file__).resolve().parents[1]))

import torch

from gpu import parts, tables
from gpu.five_steps import five_steps
from gpu.subjects import SMALL, SUBJECTS, WHOLE, Sizes, corpus

_SMALLEST: Final = SUBJECTS[0]
_ERROR: Final = 2000
"""Characters of an error that are kept."""

Work = Callable[[], Mapping[str, Any]]


def planned(sizes: Sizes, device: str, peak: float) -> dict[str, Work]:
    """Return the parts after the first, in order."""
    works: dict[str, Work] = {}
    for subject in SUBJECTS:
        works[f"speed: {subject.name}"] = functools.partial(
            parts.speed, subject, sizes, device, peak
        )
    works["run"] = functools.partial(five_steps, _SMALLEST, sizes, device)
    for subject in SUBJECTS:
        if not subject.rank:
            works[f"agreement: {subject.name}"] = functools.partial(
                parts.agreement, subject, sizes, device
            )
    works["trl"] = functools.partial(parts.beside_trl, _SMALLEST, sizes, device)
    works["vllm"] = functools.partial(parts.speed, _SMALLEST, sizes, device, peak, "vllm")
    return works


def in_own_process(work: Work, limit_s: float) -> Mapping[str, Any]:
    """Return what work returns in a process of its own, or its `error`."""
    context = multiprocessing.get_context("fork")  # this process never touches the GPU
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_send, args=(work, sender))
    child.start()
    sender.close()
    try:
        if not receiver.poll(max(0.0, limit_s)):
            return {"error": f"took longer than the {limit_s:.0f} s that were left"}
        found: Mapping[str, Any] = receiver.recv()
        return found
    except EOFError:
        child.join()
        return {"error": f"the process ended with code {child.exitcode}"}
    finally:
        child.kill()
        child.join()


def _send(work: Work, sender: Connection) -> None:
    try:
        sender.send(work())
    except Exception:
        sender.send({"error": traceback.format_exc()[-_ERROR:]})


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--output", type=Path, default=Path("runs/gpu"))
    options.add_argument("--minutes", type=float, default=20)
    options.add_argument("--only", help="parts whose names begin so")
    options.add_argument("--small", action="store_true", help="a rehearsal with shrunk models")
    chosen = options.parse_args()
    ends = time.monotonic() + 60 * chosen.minutes
    logging.disable(logging.WARNING)
    warnings.filterwarnings("ignore", module="transformers")
    sizes = SMALL if chosen.small else WHOLE
    device = in_own_process(_device, 120)["device"]
    if device == "cpu" and not chosen.small:
        print("torch finds no GPU: --small rehearses the parts on the CPU")
        return 2
    chosen.output.mkdir(parents=True, exist_ok=True)
    corpus(sizes.warm_episodes)  # once for all parts
    found = {"machine": in_own_process(functools.partial(parts.machine, sizes, device), 300)}
    if "error" in found["machine"]:
        print(found["machine"]["error"])
        return 1
    for name, work in planned(sizes, device, found["machine"]["operations_per_s"]).items():
        if chosen.only and not name.startswith(chosen.only):
            continue
        print(name, flush=True)
        started = time.monotonic()
        found[name] = {**in_own_process(work, ends - started)}
        found[name]["took_s"] = time.monotonic() - started
        (chosen.output / "gpu.json").write_text(json.dumps(found, indent=1))
        (chosen.output / "gpu.md").write_text(tables.markdown(found))
    print((chosen.output / "gpu.md").read_text())
    failed = {name: one["error"] for name, one in found.items() if "error" in one}
    for name, error in failed.items():
        print(f"FAILED: {name}: {error}")
    return 1 if failed else 0


def _device() -> dict[str, str]:
    return {"device": "cuda" if torch.cuda.is_available() else "cpu"}


if __name__ == "__main__":
    sys.exit(main())
