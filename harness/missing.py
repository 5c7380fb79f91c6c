"""What a run needs and this machine lacks, each with what brings it."""

from __future__ import annotations

import os
import shutil
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import torch

from agentgyms.chat.models import Model, read_model
from agentgyms.chat.values import Sampling
from agentgyms.errors import AgentGymsError
from harness import checks, footprint
from harness.annotators.semantic import DEFAULT_MODELS
from harness.config import Config
from harness.footprint import Machine
from harness.shapes import Shape, description_of

_WEIGHTS: Final = ("model.safetensors", "model.safetensors.index.json")
_LOCAL: Final = ("http://127.0.0.1", "http://localhost", "http://[::1]")
_PATIENCE_S: Final = 2.0
"""How long a server may take to say that it is there."""


def missing(config: Config, shape: Shape | None, machine: Machine) -> list[str]:
    """Return why a resolved run could not start, or would not last; empty if nothing is known."""
    found = [*_refused(config, machine), *_packages(config), *_models(config), *_keys(config)]
    found += [*_servers(config), *_devices(machine), *_run(config)]
    if shape is not None:
        found += [*_memory(config, shape, machine), *_disk(config, shape, machine)]
    return list(dict.fromkeys(found))


def _refused(config: Config, machine: Machine) -> Iterator[str]:
    """Yield what the run would say first: a wrong setting, or data that is not here.

    What others here tell does not hide it: packages, GPUs of another machine, and that an engine
    cannot sleep on this one.
    """
    config = replace(config, log=replace(config.log, wandb=None))
    awake = replace(config, rollout=replace(config.rollout, sleep=False))
    elsewhere = machine.kind == "cuda" and not torch.cuda.is_available()
    for one in (awake,) if elsewhere else (config, awake):
        try:
            checks.check(one)
        except AgentGymsError as e:
            yield str(e)


def _packages(config: Config) -> Iterator[str]:
    wanted = {
        "vllm": (config.rollout.backend == "vllm", "pip install 'agentgyms[vllm]'"),
        "peft": (config.policy.lora.rank > 0, "pip install 'agentgyms[harness]'"),
        "wandb": (config.log.wandb is not None, "pip install wandb"),
        "flash_attn": (config.policy.attention == "flash_attention_2", "pip install flash-attn"),
    }
    for package, (needed, command) in wanted.items():
        if needed and find_spec(package) is None:
            yield f"{package} is not installed, run: {command}"


def _models(config: Config) -> Iterator[str]:
    names = [] if config.policy.model in checks.TINY_MODELS else [config.policy.model]
    for key in ("scorer", "match"):
        kind, _, own = str(config.method.credit.get(key)).partition(":")
        if kind in DEFAULT_MODELS:
            names.append(own or DEFAULT_MODELS[kind])
    for name in names:
        if not _is_here(name):
            yield f"the model {name} is not on this machine, run: hf download {name}"


def _is_here(model: str) -> bool:
    if Path(model).is_dir():
        return description_of(model) is not None
    if description_of(model) is None:
        return False
    from huggingface_hub import try_to_load_from_cache

    return any(isinstance(try_to_load_from_cache(model, name), str) for name in _WEIGHTS)


def _keys(config: Config) -> Iterator[str]:
    """Yield the keys of models that the environment asks and that are on other machines."""
    for where, kwargs in (("env", config.env.kwargs), ("eval", config.eval.kwargs)):
        for name, value in kwargs.items():
            asked = _asked(value, name)
            if asked is None or asked.url.startswith(_LOCAL) or asked.key_variable in os.environ:
                continue
            yield (
                f"{where}.kwargs.{name} asks {asked.name} at {asked.url}, and its key is not set, "
                f"run: export {asked.key_variable}=..."
            )


def _asked(value: Any, name: str) -> Model | None:
    """Return the model that an argument of an environment names, if it names one."""
    if not (isinstance(value, str) and "@http" in value) and not (
        isinstance(value, Mapping) and {"name", "url"} <= value.keys()
    ):
        return None
    try:
        return read_model(value, name, Sampling())
    except (AgentGymsError, ImportError):  # the environment says it better
        return None


def _servers(config: Config) -> Iterator[str]:
    if config.rollout.backend != "server":
        return
    if not config.rollout.urls:
        yield "rollout.backend is 'server' and rollout.urls is empty: name vLLM's servers there"
    for url in config.rollout.urls:
        if not _answers(f"{url.rstrip('/')}/health"):
            yield f"no server answers at {url}: start one as docs/training.md says"


def _answers(url: str) -> bool:
    if not url.startswith(("http://", "https://")):
        return False
    try:
        with urllib.request.urlopen(url, timeout=_PATIENCE_S) as answer:  # noqa: S310 (checked)
            return int(answer.status) < 500
    except (OSError, ValueError):
        return False


def _devices(machine: Machine) -> Iterator[str]:
    if machine.kind != "cuda":
        return
    here = torch.cuda.device_count()
    if here < machine.processes:
        yield f"the plan is for {machine.processes} GPUs, and torch finds {here} on this machine"


def _run(config: Config) -> Iterator[str]:
    folder = Path(config.run.output) / config.run.name
    if (folder / "config.json").exists():
        yield f"{folder} holds a run already: go on with --resume {folder}, or --set run.name=..."


def _memory(config: Config, shape: Shape, machine: Machine) -> Iterator[str]:
    needed = footprint.peak(footprint.memory(config, shape, machine))
    if machine.kind == "cpu":
        needed *= machine.processes  # they share it
    if machine.memory is not None and needed > machine.memory:
        where = "each GPU" if machine.kind == "cuda" else "this machine"
        yield (
            f"{needed / 1e9:.0f} GB of memory are needed, and {where} has "
            f"{machine.memory / 1e9:.0f}: more GPUs (--gpus), policy.lora.rank, a smaller "
            "optimizer.micro_batch_tokens, policy.gradient_checkpointing, rollout.sleep"
        )


def _disk(config: Config, shape: Shape, machine: Machine) -> Iterator[str]:
    numbers = footprint.Numbers.of(config, machine)
    needed = footprint.kept_checkpoints(config) * footprint.checkpoint_bytes(config, shape, numbers)
    place = Path(config.run.output).absolute()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    if needed > free:
        yield (
            f"{needed / 1e9:.0f} GB of checkpoints are kept, and {place} has {free / 1e9:.0f} GB "
            "left: set run.output to another disk, or checkpoint.keep lower"
        )
