"""Refuses a configuration that would fail later: after the warm start, or after an hour."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import gymnasium as gym
import torch

from harness import prompts
from harness.annotators import state_values
from harness.config import TINY_MODELS, Config, OptimizerConfig, consistency
from harness.inference.generation import check_generation
from harness.model import adapters, hub
from harness.model.packed_rows.attention import has_kernel, obstacle_of
from harness.model.packed_rows.split_row import heads_obstacle
from harness.model.vision import MODEL_TYPES
from harness.model.weights import converted
from harness.preflight import chat_template, recorded_files, teacher_model
from harness.preflight.method_trial import check_method
from harness.preflight.model_shapes import shape_of
from harness.prompts import PromptStyle
from harness.rollouts.build import make_eval_pool, make_pool
from harness.rollouts.env_pool import EnvPool
from harness.runs import tracking
from harness.types.errors import ConfigError
from harness.types.json_files import read_object


def check(config: Config) -> None:
    """Check names, numbers, hyperparameters, the environment and its splits of a resolved run.

    Raises `ConfigError`, which names the setting, or `AgentGymsError` if the environment cannot be
    made because its data or its server is missing.
    """
    style = prompts.load(
        config.agent.style, config.env.id, config.agent.tool_format, config.env.kwargs
    )
    consistency.check(config)
    tracking.check(config)
    _check_model(config)
    _check_images(config, style)
    _check_packing(config)
    check_generation(config, shows_image=style.shows_image)
    check_method(config)
    recorded_files.check_method(config)
    teacher_model.check(config)
    _check_environment(config, style)


def check_processes(config: Config, processes: int) -> None:
    """Raise `ConfigError` for settings that a run with so many processes cannot have."""
    if config.rollout.ahead and processes > 1:
        raise ConfigError(
            f"rollout.ahead is {config.rollout.ahead!r} and {processes} processes train: those "
            "that play and those that learn would exchange at once, in no fixed order; start one "
            "process, or set it to 0"
        )
    check_optimizer(config.optimizer, sharded=processes > 1)
    if config.policy.offload == "parameters" and processes == 1:
        raise ConfigError(
            "policy.offload is 'parameters', which needs several processes: start them with "
            "torchrun, or use 'optimizer'"
        )
    if processes % config.policy.sequence_parallel:
        raise ConfigError(
            f"policy.sequence_parallel is {config.policy.sequence_parallel}, which does not divide "
            f"the number of processes, {processes}: start a multiple of it with torchrun"
        )


def _check_model(config: Config) -> None:
    if config.policy.model not in TINY_MODELS:
        hub.check_name(config.policy.model, "policy.model")
    chat_template.check(config)
    if config.policy.lora.rank:
        adapters.check_installed()
    try:
        torch.device(config.policy.device or "cpu")
    except RuntimeError as e:
        raise ConfigError(f"policy.device {config.policy.device!r} cannot be used: {e}") from None


def check_optimizer(config: OptimizerConfig, *, sharded: bool) -> None:
    """Raise `ConfigError` for Muon if this torch has none, or the weights are sharded."""
    if config.name != "muon":
        return
    if sharded:
        raise ConfigError(
            "optimizer.name 'muon' needs whole matrices, and several processes hold each a part of "
            "them: train with one process, or with 'adamw'"
        )
    if not hasattr(torch.optim, "Muon"):
        raise ConfigError(
            f"optimizer.name 'muon' needs torch 2.9 or later, and this is {torch.__version__}: "
            "upgrade it, or use 'adamw'"
        )


def _check_packing(config: Config) -> None:
    """Refuse packed sequences for an attention that cannot take them, if the model is here."""
    own, size = config.optimizer, config.policy.sequence_parallel
    shares = own.packing == "shared"
    if not (own.packing == "packed" or shares or size > 1):
        return
    kind, layer_types, obstacle = config.policy.attention or "sdpa", tuple[str, ...](), None
    with suppress(ConfigError):
        text = json.loads(shape_of(config.policy).text)
        layer_types = text.get("layer_types") or ()
        obstacle = heads_obstacle(int(text["num_attention_heads"]), size)
    on_gpu = config.policy.device != "cpu" and torch.cuda.is_available()
    slow = on_gpu and config.policy.precision != "float32" and not has_kernel(kind)
    version = f"torch {torch.__version__} has no kernel for sequences of different lengths"
    reason = obstacle_of(kind, layer_types, shares=shares)
    reason = reason or (version if slow else None) or obstacle
    if not reason:
        return
    if size > 1:
        raise ConfigError(f"policy.sequence_parallel cannot be used: {reason}; set it to 1")
    if shares:
        raise ConfigError(f"optimizer.packing 'shared' cannot be used: {reason}; leave it out")
    raise ConfigError(
        f"optimizer.packing 'packed' cannot be used: {reason}; leave it out, or set "
        "policy.attention to 'flash_attention_2'"
    )


def _check_images(config: Config, style: PromptStyle) -> None:
    """Refuse a text-only model, if it is here, for a style that shows an image."""
    name = config.policy.model
    if not style.shows_image or name == "tiny-vl":
        return
    kind = "qwen2" if name == "tiny" else _model_type(Path(converted.folder_of(name)))
    if kind and kind not in MODEL_TYPES:
        raise text_only_error(name, style.name)


def _model_type(folder: Path) -> str:
    try:
        return str(read_object(folder / "config.json", ConfigError)["model_type"])
    except (ConfigError, KeyError):
        return ""


def text_only_error(model: str, style: str) -> ConfigError:
    """Return the error for a text-only model and a style that shows an image."""
    return ConfigError(
        f"policy.model {model!r} reads only, but the prompt style {style} shows an image: use "
        f"'tiny-vl' or a model of type {' or '.join(MODEL_TYPES)}, or a style without an image"
    )


def _check_environment(config: Config, style: PromptStyle) -> None:
    pools = [make_pool(config, config.env.train_split, 1)]
    splits = (str(config.eval.split), *config.eval.final_splits)
    pools += [make_eval_pool(config, split) for split in dict.fromkeys(splits)]
    for pool in pools:
        try:
            tasks = pool.tasks()
            if pool is pools[0]:
                recorded_files.check_files(config, pool.data_version)
            if pool is pools[0] and state_values.wanted(config.method.annotators):
                _check_forks(config, pool, tasks[0])
            if style.shows_image and "image" not in _observation_parts(pool):
                raise ConfigError(
                    f"the prompt style {style.name} shows an image, but {config.env.id} observes "
                    "text alone: use another agent.style or env.id"
                )
        except (gym.error.Error, TypeError, ImportError) as e:
            raise ConfigError(f"env.id {config.env.id!r} cannot be made: {e}") from e
        finally:
            pool.close()


def _check_forks(config: Config, pool: EnvPool, task: str) -> None:
    """Refuse an environment that cannot be forked where the method plays continuations."""
    group = pool.take()
    try:
        group.reset(seed=0, options={"task_id": task})
        group.envs[0].fork().close()
    except Exception as e:  # a plug-in may raise anything
        raise ConfigError(
            f"method {config.method.name} plays on from forks, and {config.env.id} cannot be "
            f"forked: {type(e).__name__}: {e!s:.120}"
        ) from e
    finally:
        group.close()


def _observation_parts(pool: EnvPool) -> Iterable[str]:
    """Return the names of the parts of an environment's observations; none for text."""
    group = pool.take()
    space = group.envs[0].observation_space
    pool.release(group)
    return tuple(space) if isinstance(space, gym.spaces.Dict) else ()
