"""The missing parts of a run on this machine, each with its remedy."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import torch

from agentgyms.core.errors import AgentGymsError, ServerUnavailable
from agentgyms.core.http_clients import parse_address
from agentgyms.core.imports import install
from agentgyms.models.json_client import exchange
from agentgyms.models.model_config import Model, read_model
from agentgyms.models.types import Sampling
from harness.annotators.semantic import DEFAULT_MODELS
from harness.config import TINY_MODELS, Config, consistency, replace
from harness.distributed.fsdp import replicas_error
from harness.model import adapters
from harness.model.weights import converted
from harness.preflight import checks, defaults, memory
from harness.preflight.machine import Allocation, Machine
from harness.preflight.model_shapes import Shape, config_file_of
from harness.preflight.teacher_model import settings_of_teacher
from harness.runs.runfolder import RunFolder
from harness.types.errors import ConfigError

_WEIGHTS: Final = ("model.safetensors", "model.safetensors.index.json")
_LOCAL: Final = ("http://127.0.0.1", "http://localhost", "http://[::1]")
_COUNTS: Final = (2, 4, 8, 16, 32, 64)
_LADDER: Final = (
    *(("agent.max_context", tokens) for tokens in (4096, 2048)),
    *(("rollout.max_live", episodes) for episodes in (64, 32, 16)),
    *(("optimizer.micro_batch_tokens", tokens) for tokens in (4096, 2048)),
    ("rollout.cache_gb", 0),
    ("policy.gradient_checkpointing", True),
    ("agent.max_context", 1024),
    ("rollout.max_live", 8),
    ("optimizer.micro_batch_tokens", 1024),
    ("agent.max_context", 512),
    ("rollout.max_live", 4),
    ("policy.offload", "optimizer"),
)
"""Settings that lower a run's memory, the mildest first. Tiny models have contexts of 2,048 tokens;
below that, time is given before context."""
_PATIENCE_S: Final = 2.0
"""Longest wait for a server's answer."""


def missing(config: Config, shape: Shape | None, machine: Machine) -> list[str]:
    """Return why a resolved run could not start or finish, but for the disk (`no_room`)."""
    found = [*_refused(config, machine), *_packages(config), *_models(config), *_keys(config)]
    found += [*_servers(config), *_devices(config, machine), *_run(config)]
    if shape is not None:
        found += _memory(config, shape, machine)
    return list(dict.fromkeys(found))


def _refused(config: Config, machine: Machine) -> Iterator[str]:
    """Yield the errors of `checks`, without those that other functions here find."""
    config = replace(config, log=replace(config.log, outputs=()))
    without_sleep = replace(config, rollout=replace(config.rollout, sleep=False))
    elsewhere = machine.kind == "cuda" and not torch.cuda.is_available()
    for variant in (without_sleep,) if elsewhere else (config, without_sleep):
        try:
            checks.check(variant)
        except AgentGymsError as e:
            yield str(e)


def _packages(config: Config) -> Iterator[str]:
    wanted = {
        "vllm": (config.rollout.backend == "vllm", install("vllm")),
        "peft": (config.policy.lora.rank > 0, install("harness")),
        "wandb": ("wandb" in config.log.outputs, "pip install wandb"),
        "trackio": ("trackio" in config.log.outputs, "pip install trackio"),
        "flash_attn": (config.policy.attention == "flash_attention_2", "pip install flash-attn"),
    }
    for package, (needed, command) in wanted.items():
        if needed and find_spec(package) is None:
            yield f"{package} is not installed, run: {command}"


def _models(config: Config) -> Iterator[str]:
    names = [] if config.policy.model in TINY_MODELS else [config.policy.model]
    for key in ("scorer", "match"):
        kind, _, own = str(config.method.credit.get(key)).partition(":")
        if kind in DEFAULT_MODELS:
            names.append(own or DEFAULT_MODELS[kind])
    reader = defaults.annotator_settings(config).get("process_reward", {}).get("model")
    names += [reader] if reader and reader not in TINY_MODELS else []
    teacher = settings_of_teacher(config)
    names += [teacher.loaded] if teacher is not None and teacher.loaded is not None else []
    for name in (adapters.base_of(name) or name for name in names):
        if converted.is_converted(name):
            yield from _not_converted(name)
        elif not _is_here(name):
            yield f"the model {name} is not on this machine, run: hf download {shlex.quote(name)}"


def _not_converted(name: str) -> Iterator[str]:
    try:
        converted.folder_of(name)
    except ConfigError as e:
        yield str(e)


def _is_here(model: str) -> bool:
    if Path(model).is_dir():
        return config_file_of(model) is not None
    if config_file_of(model) is None:
        return False
    from huggingface_hub import try_to_load_from_cache

    return any(isinstance(try_to_load_from_cache(model, name), str) for name in _WEIGHTS)


def _keys(config: Config) -> Iterator[str]:
    """Yield the missing API keys of models that the environment uses on other machines."""
    for where, kwargs in (("env", config.env.kwargs), ("eval", config.eval.kwargs)):
        for name, value in kwargs.items():
            model = _model_of(value, name)
            if model is None or model.url.startswith(_LOCAL) or model.key_variable in os.environ:
                continue
            yield (
                f"{where}.kwargs.{name} uses {model.name} at {model.url}, and its key is not set, "
                f"run: export {model.key_variable}=..."
            )


def _model_of(value: Any, name: str) -> Model | None:
    """Return the model that an argument of an environment names, if it names one."""
    if not (isinstance(value, str) and "@http" in value) and not (
        isinstance(value, Mapping) and {"name", "url"} <= value.keys()
    ):
        return None
    try:
        return read_model(value, name, Sampling())
    except (AgentGymsError, ImportError):  # the environment reports it with more detail
        return None


def _servers(config: Config) -> Iterator[str]:
    if config.rollout.backend != "server":
        return
    if not config.rollout.urls:
        yield "rollout.backend is 'server' and rollout.urls is empty: list the vLLM servers there"
    for url in config.rollout.urls:
        if not _answers(url):
            yield f"no server answers at {url}: start one, see docs/training.md"


def _answers(url: str) -> bool:
    try:
        health = f"{parse_address(url).geturl().removesuffix('/v1')}/health"
        status, _ = exchange("GET", health, connect_s=_PATIENCE_S, timeout_s=_PATIENCE_S)
    except (ServerUnavailable, ValueError):
        return False
    return status < 400


def _devices(config: Config, machine: Machine) -> Iterator[str]:
    try:
        checks.check_processes(config, machine.processes)
    except ConfigError as e:
        yield str(e)
    if machine.processes > 1 and machine.processes % config.policy.replicas:
        yield replicas_error(config.policy.replicas, machine.processes)
    if machine.kind != "cuda":
        return
    here = torch.cuda.device_count()
    if here < machine.processes:
        yield f"the plan is for {machine.processes} GPUs, and torch finds {here} on this machine"


def _run(config: Config) -> Iterator[str]:
    folder = RunFolder.from_config(config).path
    if (folder / "config.json").exists():
        yield f"{folder} holds a run already: go on with --resume {folder}, or --set run.name=..."


def _memory(config: Config, shape: Shape, machine: Machine) -> Iterator[str]:
    needed = _needed(config, shape, machine)
    if machine.memory is None or needed <= machine.memory:
        return
    where = "each GPU" if machine.kind == "cuda" else "this machine"
    text = (
        f"{needed / 1e9:.0f} GB of memory are needed, and {where} has "
        f"{machine.memory / 1e9:.0f}, most for {_largest(memory.memory(config, shape, machine))}; "
        f"{_enough(config, shape, machine)}"
    )
    values = fitting(config, shape, machine)
    if values:
        line = " ".join(f"--set {key}={_toml(value)}" for key, value in values.items())
        yield f"{text}it fits with\n  {line}"
    else:
        yield (
            f"{text}lower it by policy.lora.rank, a smaller optimizer.micro_batch_tokens, "
            "rollout.max_live, policy.gradient_checkpointing, policy.offload, rollout.sleep"
        )


def _needed(config: Config, shape: Shape, machine: Machine) -> float:
    """Return the bytes of a device, or of the main memory that all processes share."""
    needed = memory.peak(memory.memory(config, shape, machine))
    return needed * (machine.processes if machine.kind == "cpu" else 1)


def fitting(config: Config, shape: Shape, machine: Machine) -> dict[str, Any]:
    """Return settings with which a resolved run fits into memory; empty if none do.

    Steps of `_LADDER` are taken until it fits; then all are taken back as far as it still fits.
    """
    most = machine.memory or 0
    taken: dict[str, list[Any]] = {}
    least = _needed(config, shape, machine)
    for key, value in _LADDER:
        if least <= most:
            break
        if key == "agent.max_context" and config.agent.max_context is not None:
            continue  # somebody knew how long the prompts are
        last = {name: values[-1] for name, values in taken.items()}
        tried = _changed(config, {**last, key: value})
        if tried is not None and (needed := _needed(tried, shape, machine)) < least:
            least = needed
            taken.setdefault(key, []).append(value)
    if least > most:
        return {}
    found = {name: values[-1] for name, values in taken.items()}
    for key, values in taken.items():
        rest = {name: value for name, value in found.items() if name != key}
        for milder in (rest, *({**rest, key: value} for value in values)):
            tried = _changed(config, milder)
            if tried is not None and _needed(tried, shape, machine) <= most:
                found = milder
                break
    return {key: found[key] for key in taken if key in found}


def _changed(config: Config, values: Mapping[str, Any]) -> Config | None:
    """Return a run with lower settings; None if one is not lower, or they cannot go together."""
    for key, value in values.items():
        section, name = key.split(".")
        before = getattr(getattr(config, section), name)
        if value == before or (type(value) is int and before is not None and value > before):
            return None
        config = replace(config, **{section: replace(getattr(config, section), **{name: value})})
    try:
        consistency.check(config)
    except ConfigError:
        return None
    return config


def _toml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _largest(allocations: list[Allocation]) -> str:
    ordered = sorted(allocations, key=lambda one: -one.size)[:2]
    return " and ".join(f"{one.name} ({one.size / 1e9:.0f} GB)" for one in ordered)


def _enough(config: Config, shape: Shape, machine: Machine) -> str:
    """Return the smallest number of GPUs of this size that the run fits on, as words."""
    if machine.kind != "cuda" or machine.memory is None:
        return ""
    for count in (n for n in _COUNTS if n > machine.processes and n % config.policy.replicas == 0):
        larger = Machine(machine.kind, count, machine.memory)
        if memory.peak(memory.memory(config, shape, larger)) <= machine.memory:
            return f"it fits on {count} such GPUs; "
    return f"it fits on no number of them up to {_COUNTS[-1]}; "


def no_room(output: str, needed: float) -> Iterator[str]:
    """Yield why the disk of `run.output` cannot keep checkpoints of `needed` bytes."""
    place = Path(output).absolute()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    if needed > free:
        yield (
            f"{needed / 1e9:.0f} GB of checkpoints are kept, and {place} has {free / 1e9:.0f} GB "
            "left: set run.output to another disk, or checkpoint.keep lower"
        )
