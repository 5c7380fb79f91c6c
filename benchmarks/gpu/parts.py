"""What is measured of one model: peak of matmul, speed, memory, agreement of precisions, TRL."""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
import training_update

from gpu.subjects import SEED, Sizes, Subject, prompts
from harness import config as configs
from harness.inference.completers import Completer, Sampling
from harness.inference.generation import make_generator
from harness.inference.old_logprobs import mismatch
from harness.model.logprobs import score_tokens
from harness.model.packed_rows.attention import packing_obstacle
from harness.model.packing import Sample
from harness.model.policy import Policy
from harness.preflight import memory
from harness.preflight.machine import Machine
from harness.preflight.step_time import Passed, forward_operations, training_operations
from harness.training.learner import Learner
from harness.training.phases import PhaseTimer
from harness.types.messages import Message

Figures = dict[str, Any]
_GIB = 2**30


def machine(sizes: Sizes, device: str) -> Figures:
    """Return what the machine is, and the operations per second of a product of large matrices.

    In bfloat16 on a GPU, in float32 on the CPU.
    """
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    a, b = (torch.ones(sizes.matmul, sizes.matmul, device=device, dtype=dtype) for _ in range(2))
    seconds = []
    for _ in range(10 * sizes.repeats):
        _wait(device)
        start = time.perf_counter()
        a @ b
        _wait(device)
        seconds.append(time.perf_counter() - start)
    name = torch.cuda.get_device_name() if device == "cuda" else "CPU"
    total = torch.cuda.get_device_properties(0).total_memory if device == "cuda" else None
    return {
        "device": name,
        "memory_bytes": total,
        "python": sys.version.split()[0],
        "torch": torch.__version__,
        "operations_per_s": 2 * sizes.matmul**3 / statistics.median(seconds),
    }


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def speed(subject: Subject, sizes: Sizes, device: str, peak: float, backend: str = "hf") -> Figures:
    """Return tokens per second of rollouts, rescoring and update, and memory beside its plan.

    Args:
        subject: The model.
        sizes: Of the work.
        device: `"cuda"` or `"cpu"`.
        peak: Operations per second of `machine`, for the share of it that the update reaches.
        backend: Who generates; with vLLM nothing is learned.
    """
    if backend == "vllm" and find_spec("vllm") is None:
        return {"skipped": "vLLM is not installed"}
    config, policy = subject.config(sizes, device), subject.policy(sizes, device)
    config = configs.replace(config, rollout=configs.replace(config.rollout, backend=backend))
    phases, measured = PhaseTimer(policy.device), list[Mapping[str, float]]()
    learner = Learner(policy, None, config.optimizer, "clipped", {}, 1.0)
    rows: list[Sample] = []
    with tempfile.TemporaryDirectory() as folder:
        generator = make_generator(config, policy, Path(folder))
        generator.sync()
        asked = prompts(policy, sizes, sizes.sequences)
        for _ in range(sizes.repeats + 1):
            with phases("rollouts"):
                rows = asyncio.run(_play(generator.completer, asked, sizes))
            generated = sum(len(row.response_ids) for row in rows)
            measured.append(phases.take({"rollouts": generated}))
        if backend == "hf":
            measured += _learn(learner, rows, sizes, phases)
        generator.close()
    medians = _medians(measured)
    figures: Figures = {
        "tokens_per_s": _named(medians, "time/", "_tokens_per_s"),
        "sizes": asdict(sizes),
    }
    if backend == "hf":
        figures |= _mfu(subject, sizes, rows, medians, peak)
        figures["memory_bytes"] = _memory(subject, sizes, device, medians)
    return figures


async def _play(completer: Completer, asked: Sequence[str], sizes: Sizes) -> list[Sample]:
    """Return a sequence for each prompt, with credit drawn at random."""
    rng = np.random.default_rng(SEED)
    lengths = rng.integers(sizes.response // 4, sizes.response, len(asked), endpoint=True)
    calls = (
        completer.complete(
            [Message(role="user", content=text)],
            Sampling(temperature=1.0, max_tokens=int(length)),
            seed,
        )
        for seed, (text, length) in enumerate(zip(asked, lengths, strict=True))
    )
    said = await asyncio.gather(*calls)
    credit = rng.standard_normal(len(said))
    return [
        Sample(one.prompt_ids, one.response_ids, one.logprobs, float(value))
        for one, value in zip(said, credit, strict=True)
    ]


def _learn(
    learner: Learner, rows: Sequence[Sample], sizes: Sizes, phases: PhaseTimer
) -> list[Mapping[str, float]]:
    """Return the figures of rescoring and updates, padded and, where the model allows, packed."""
    policy, measured = learner.policy, list[Mapping[str, float]]()
    tokens = sum(row.length for row in rows)
    for name, packed in (("padded", False), ("packed", True)):
        if packed and packing_obstacle(policy.model):
            continue
        policy.set_padding_free(packed)
        for number in range(sizes.repeats + 1):
            with phases(f"rescore_{name}"):
                score_tokens(policy, rows, 1.0, sizes.micro_batch)
            with phases(f"update_{name}"):
                learner.update(rows, step=number, seed=number)
            done = phases.take({f"{kind}_{name}": tokens for kind in ("rescore", "update")})
            if number:  # the first one warms up
                measured.append(done)
    return measured


def _medians(measured: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for one in measured for name in one)
    return {n: statistics.median(one[n] for one in measured if n in one) for n in names}


def _named(figures: Mapping[str, float], start: str, end: str) -> dict[str, float]:
    """Return the figures whose names begin and end so, by what is between."""
    return {
        name.removeprefix(start).removesuffix(end): value
        for name, value in figures.items()
        if name.startswith(start) and name.endswith(end)
    }


def passed(rows: Sequence[Sample]) -> Passed:
    """Return what passes through the model with these sequences."""
    return Passed(
        sum(row.length for row in rows),
        sum(row.num_actions for row in rows),
        sum(row.length**2 for row in rows),
    )


def _mfu(
    subject: Subject,
    sizes: Sizes,
    rows: Sequence[Sample],
    medians: Mapping[str, float],
    peak: float,
) -> Figures:
    """Return the share of the peak: operations of the passes, none counted that is repeated."""
    shape, work = subject.shape(sizes), passed(rows)
    needed = {
        "rescore": forward_operations(shape, work),
        "update": training_operations(shape, work, adapted=subject.rank > 0),
    }
    seconds = _named(medians, "time/", "_s")
    share = {
        name: needed[name.partition("_")[0]] / spent / peak
        for name, spent in seconds.items()
        if name.partition("_")[0] in needed and not name.endswith("_per")
    }
    return {"mfu": share}


def _memory(subject: Subject, sizes: Sizes, device: str, medians: Mapping[str, float]) -> Figures:
    """Return the plan of the dry run by phase, and the most that was allocated; none on a CPU."""
    planned = memory.by_phase(
        memory.memory(subject.config(sizes, device), subject.shape(sizes), Machine(device))
    )
    peaks = _named(medians, "memory/", "_allocated_gib")
    own = {"playing": ("rollouts",), "learning": ("update_padded", "update_packed")}
    return {
        phase: {
            "planned": size,
            "measured": max((peaks[n] * _GIB for n in own[phase] if n in peaks), default=None),
        }
        for phase, size in planned.items()
    }


def agreement(subject: Subject, sizes: Sizes, device: str) -> Figures:
    """Return how far log-probabilities and gradients in mixed precision are from float32.

    Both have the same weights. The gradient is that of the mean log-probability; its error is the
    norm of the difference by the norm of the one in float32.
    """
    subject = replace(subject, rank=0)
    exact = subject.policy(sizes, device, "float32")
    generator = make_generator(_exact(subject.config(sizes, device)), exact, Path("unused"))
    asked = prompts(exact, sizes, sizes.compared)
    rows = asyncio.run(_play(generator.completer, asked, sizes))
    scores, gradients = {}, {}
    for policy in (exact, subject.policy(sizes, device, "mixed")):
        found = score_tokens(policy, rows, 1.0, sizes.micro_batch)
        scores[policy.precision] = np.concatenate([one.logprob for one in found])
        gradients[policy.precision] = _gradient(policy, rows, sizes)
        policy.model.zero_grad()
    squares, error = 0.0, 0.0
    for name, gradient in gradients["float32"].items():
        squares += float(gradient.double().norm()) ** 2
        error += float((gradients["mixed"][name] - gradient).double().norm()) ** 2
    apart = mismatch(scores["mixed"], scores["float32"])
    return {
        "logprob_difference": apart["mismatch/difference"],
        "logprob_difference_max": apart["mismatch/difference_max"],
        "gradient_error": (error / squares) ** 0.5,
    }


def _exact(config: configs.Config) -> configs.Config:
    return configs.replace(config, policy=configs.replace(config.policy, precision="float32"))


def _gradient(policy: Policy, rows: Sequence[Sample], sizes: Sizes) -> dict[str, torch.Tensor]:
    """Return the gradient of each weight."""
    policy.model.train()
    count = sum(row.num_actions for row in rows)
    for batch in policy.micro_batches(rows, sizes.micro_batch):
        logprob, _ = policy.logprobs(batch)
        (logprob.sum() / count).backward()  # type: ignore[no-untyped-call]
    return {
        name: weight.grad.detach().cpu()
        for name, weight in policy.model.named_parameters()
        if weight.grad is not None
    }


def beside_trl(subject: Subject, sizes: Sizes, device: str) -> Figures:
    """Return the update beside TRL's on the same sequences: tokens per second, and losses.

    TRL is in the Python that AGENTGYMS_TRL_PYTHON names, or in this one.
    """
    python = os.environ.get("AGENTGYMS_TRL_PYTHON") or (sys.executable if find_spec("trl") else "")
    if not python:
        return {"skipped": "TRL is not installed: set AGENTGYMS_TRL_PYTHON, as `make bench` does"}
    policy = subject.policy(sizes, device)
    config = subject.config(sizes, device)
    generator = make_generator(config, policy, Path("unused"))
    generator.sync()
    asked = prompts(policy, sizes, sizes.sequences)
    rows = asyncio.run(_play(generator.completer, asked, sizes))
    del generator
    made = training_update.beside_trl(rows, policy, sizes.repeats, python)
    return {
        "tokens_per_s": {
            side: statistics.median(rate.per_s for rate in made[side]) for side in ("update", "trl")
        },
        "losses": made["losses"],
    }
