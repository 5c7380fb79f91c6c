"""Starts a new run with its warm start, or resumes a run from its last checkpoint."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from harness import config as configs
from harness import prompts
from harness.annotators import semantic
from harness.config import TINY_MODELS, Config, replace
from harness.distributed import fsdp
from harness.distributed.process_group import SINGLE_PROCESS, ProcessGroup
from harness.distributed.signals import Abandoned, StopSignal
from harness.model import adapters, tiny, tiny_vl
from harness.model.policy import Policy
from harness.model.weights import converted
from harness.model.weights.stored_weights import META
from harness.preflight import expected_time, planning, recorded_files
from harness.preflight.checks import check, check_processes, text_only_error
from harness.preflight.defaults import credit_settings, needs_reference, resolve
from harness.reporting.run_report import RunReport
from harness.rollouts.demonstrations import Demonstrator
from harness.runs import checkpoints, fsync
from harness.runs.progress import Progress
from harness.runs.runfolder import RunFolder
from harness.training.trainer import Trainer
from harness.training.warm_start import WarmStart
from harness.types import plugins
from harness.types.errors import CheckpointError, ConfigError, TrainingStopped
from harness.types.task_draws import seed_of

_MODEL, _ADAPTERS = 12, 14
_FIRST = "first"
"""Folder of the model after the warm start, until all processes have read it."""


def start(
    config: Config,
    processes: ProcessGroup = SINGLE_PROCESS,
    announce: Callable[[str], None] = lambda _: None,
) -> Trainer:
    """Return the trainer of a new run, after the warm start of its policy.

    Args:
        config: The run's settings; they need not be resolved.
        processes: The processes that train; all of them see the run's folder.
        announce: Called before the run begins, with its description and expected time.

    Raises:
        ConfigError: A setting is wrong, or the run exists.
        FolderInUse: Another process begins a run of this name.
    """
    config = resolve(config)
    check_processes(config, processes.size)
    processes.run_on_all(lambda: check(config))
    loaded_settings = _load_scorers(config, processes)
    folder = RunFolder.from_config(config)
    processes.run_on_first(lambda: folder.create(config))
    try:
        return _begin(config, folder, loaded_settings, processes, announce)
    except BaseException as e:
        if not processes.is_first or folder.warm_start.exists():
            raise
        folder.lock.discard()
        if not isinstance(e, TrainingStopped):
            raise
        raise e.with_message("nothing was learned yet, and nothing is left of the run") from e


def _load_scorers(config: Config, processes: ProcessGroup) -> dict[str, Any]:
    device = config.policy.device if processes.size == 1 else str(processes.device)
    return processes.run_on_all(lambda: semantic.resolve(credit_settings(config), device))


def _begin(
    config: Config,
    folder: RunFolder,
    loaded_settings: dict[str, Any],
    processes: ProcessGroup,
    announce: Callable[[str], None],
) -> Trainer:
    """Return the trainer of a run before its first step; a stopped warm start is saved."""
    _set_threads_and_seeds(config, processes.rank)
    stop, progress = StopSignal(0.0), _progress(config, folder.path, 0, processes, announce)
    warm_start = WarmStart(config, folder.warm_start, stop, progress)
    try:
        with stop.listening():
            policy = _shared_initial_policy(config, folder.path, processes, warm_start)
    except Abandoned:
        raise TrainingStopped(folder.how_to_resume(config.run.steps), stop.number) from None
    with progress.working("getting ready"):
        trainer = _trainer(config, folder, policy, loaded_settings, processes, progress)
    trainer.stop.take_over(stop)
    if processes.is_first:  # all have read it
        shutil.rmtree(folder.path / _FIRST, ignore_errors=True)
    return trainer


def _trainer(
    config: Config,
    folder: RunFolder,
    policy: Policy,
    loaded_settings: dict[str, Any],
    processes: ProcessGroup,
    progress: Progress,
) -> Trainer:
    """Return the trainer of a policy that has learned nothing but its warm start."""
    precision: Any = policy.precision
    config = replace(config, policy=replace(config.policy, precision=precision))
    processes.run_on_first(lambda: folder.keep(config))  # another machine goes on with it
    reference = None
    if needs_reference(config):
        if processes.is_first:
            policy.save(folder.path / "reference")
            fsync.flush_all(folder.path / "reference")
        reference = policy.frozen_copy()
    return Trainer(
        config,
        folder,
        policy,
        reference,
        loaded_settings,
        processes=processes,
        progress=progress,
        report=_report(config, folder),
    )


def _progress(
    config: Config,
    folder: Path,
    done: int,
    processes: ProcessGroup,
    announce: Callable[[str], None],
) -> Progress:
    time_left = expected_time.time_left_of(config, done)
    if processes.is_first:
        announce(f"{planning.header(config, folder)}\n{expected_time.text(time_left, done)}\n")
    episodes = config.rollout.tasks_per_step * config.rollout.group_size
    return Progress(config.run.steps, done, episodes, time_left, is_shown=processes.is_first)


def _shared_initial_policy(
    config: Config, folder: Path, processes: ProcessGroup, warm_start: WarmStart
) -> Policy:
    """Return the initial policy; the first process makes it in `first/`, and all load it there."""
    if processes.size == 1:
        return _initial_policy(config, folder, warm_start)
    load_config = _load_config(config, processes)
    if not config.warmstart.episodes:
        return processes.run_on_all(lambda: _initial_policy(load_config, folder, warm_start))
    first = folder / _FIRST
    processes.run_on_first(lambda: _initial_policy(config, folder, warm_start).save(first))
    return processes.run_on_all(lambda: _load(str(first), load_config))


def _load_config(config: Config, processes: ProcessGroup) -> Config:
    """Return settings that delay reading the weights until sharding, except with adapters."""
    if processes.size == 1:
        return config
    usual = "mixed" if processes.device.type == "cuda" else "float32"
    device = "cpu" if config.policy.lora.rank else META
    own = replace(config.policy, device=device, precision=config.policy.precision or usual)
    return replace(config, policy=own)


def resume(
    path: str | Path,
    processes: ProcessGroup = SINGLE_PROCESS,
    announce: Callable[[str], None] = lambda _: None,
    overrides: Sequence[str] = (),
) -> Trainer:
    """Return the trainer of a run, resumed from its last undamaged checkpoint.

    A run without a checkpoint starts again. The number of processes may differ from the
    checkpoint's. An override such as `run.steps=60` makes the run longer; the other arguments are
    those of `start`.

    Raises:
        CheckpointError: There is no run, its checkpoints are missing, or files are damaged.
        ConfigError: An override is wrong; nothing was changed.
        FolderInUse: Another process trains the run.
    """
    folder = RunFolder(Path(path))
    kept = configs.lengthened(folder.config(), overrides)
    try:
        plugins.load(kept.run.plugins)
        config = resolve(kept)  # a later version may have added settings
        check_processes(config, processes.size)
    except ConfigError as e:
        raise CheckpointError(f"the run in {path} cannot go on: {e}") from e
    processes.run_on_first(folder.lock.acquire)
    saved = config.checkpoint
    found = processes.run_on_first(
        lambda: checkpoints.finish_save(
            folder.path, keep=saved.keep, keep_best=saved.keep_best, best=saved.best
        )
    )
    if found is None and folder.has_trained():
        raise CheckpointError(f"{path} has no checkpoint any more: delete it and start again")
    if overrides:
        processes.run_on_first(lambda: _keep_length(folder, kept, found.step if found else 0))
    if found is None:
        return _begin(config, folder, _load_scorers(config, processes), processes, announce)
    _set_threads_and_seeds(config, processes.rank)  # a process may lack a saved random state
    load_config = _load_config(config, processes)
    reference = None
    try:
        policy = _load(str(found.folder), load_config)
        if needs_reference(config):
            reference = _load_reference(folder.path / "reference", policy, load_config)
        loaded_settings = _load_scorers(config, processes)
    except ConfigError as e:
        raise CheckpointError(f"the run in {path} cannot go on: {e}") from e
    progress = _progress(config, folder.path, found.step, processes, announce)
    return Trainer(
        config,
        folder,
        policy,
        reference,
        loaded_settings,
        resumed=found,
        processes=processes,
        progress=progress,
        report=_report(config, folder),
    )


def _keep_length(folder: RunFolder, config: Config, done: int) -> None:
    """Write the settings of a run with another `run.steps`; `done` steps are saved."""
    if config.run.steps < done:
        folder.lock.release()
        raise ConfigError(
            f"run.steps is {config.run.steps}, and {done} steps of {folder.path} are saved: give "
            f"{done} or more"
        )
    folder.keep(config)


def _report(config: Config, folder: RunFolder) -> Callable[[bool], None]:
    return RunReport(folder.path, pictures="pictures" in config.log.outputs).write


def _set_threads_and_seeds(config: Config, rank: int) -> None:
    """Set torch's threads, and seed the global generators for other code; ours uses none."""
    if config.run.threads:
        torch.set_num_threads(config.run.threads)
    seed = config.run.seed + rank
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 (others may still draw from it)
    torch.manual_seed(seed)


def _load(path: str, config: Config) -> Policy:
    own = config.policy
    policy = Policy.load(path, own.device, precision=own.precision, attention=own.attention)
    _set_up(policy, config)
    style = prompts.load(
        config.agent.style, config.env.id, config.agent.tool_format, config.env.kwargs
    )
    if style.shows_image and policy.vision is None:
        raise text_only_error(config.policy.model, style.name)
    if config.agent.context != "window":
        policy.chat_encoder.check_transcripts(style.tools.tools.schemas if style.tools else ())
    return policy


def _set_up(policy: Policy, config: Config) -> Policy:
    own = config.policy
    policy.layout = fsdp.Layout(
        replicas=own.replicas,
        reduce_once=own.reduce_once,
        offload=own.offload,
        sequence=own.sequence_parallel,
    )
    policy.chat_encoder.template_arguments = own.chat_template_kwargs
    if own.gradient_checkpointing:
        policy.checkpoint_activations()
    packing = config.optimizer.packing
    policy.set_padding_free({"padded": False, "packed": True}.get(packing or ""))
    # the adapters and the processes, which cannot share, come later
    may_share = packing is None and not own.lora.dropout and own.sequence_parallel == 1
    policy.set_share_prefixes(None if may_share else packing == "shared")
    recorded_files.check_tokenizer(config, policy.chat_tokenizer)
    return policy


def _load_reference(folder: Path, policy: Policy, config: Config) -> Policy:
    """Return the policy before training; with adapters it shares the frozen weights."""
    if not policy.is_adapted:
        return _load(str(folder), config).frozen_copy()
    reference = policy.frozen_copy()
    adapters.load_weights(reference.model, folder)
    return reference


def _initial_policy(config: Config, folder: Path, warm_start: WarmStart) -> Policy:
    """Return the policy after its warm start; a tiny model gets its adapters only then."""
    if not config.warmstart.episodes:
        return _adapted(_load(config.policy.model, config), config)
    demonstrator = warm_start.demonstrate()
    if config.policy.model not in TINY_MODELS:
        policy = _adapted(_load(config.policy.model, config), config)
        warm_start.learn(policy, demonstrator)
        return policy
    policy = _tiny_policy(config, demonstrator)
    warm_start.learn(policy, demonstrator)
    if not config.policy.lora.rank:
        return policy
    base = folder / adapters.BASE_FOLDER
    policy.save(base)
    fsync.flush_all(base)
    return _adapted(_load(str(base), config), config, str(base.resolve()))


def _adapted(policy: Policy, config: Config, base: str | None = None) -> Policy:
    name, wanted = base or config.policy.model, config.policy.lora
    if policy.is_adapted:
        rank = adapters.rank_of(policy.model)
        if rank != wanted.rank:
            raise ConfigError(
                f"policy.model {name!r} holds adapters of rank {rank}: set policy.lora.rank to "
                "that to go on with them, or give a whole model"
            )
        return policy
    if wanted.rank:
        where = converted.folder_of(name)
        where = str(Path(where).resolve()) if Path(where).is_dir() else where
        policy.adapt(wanted, where, seed_of(config.run.seed, _ADAPTERS))
    return policy


def _tiny_policy(config: Config, demonstrator: Demonstrator) -> Policy:
    """Return a tiny model with random weights and a tokenizer trained on the demonstrations."""
    size, has_images = config.policy.tiny, config.policy.model == "tiny-vl"
    kind = tiny_vl if has_images else tiny
    tokenizer = kind.make_tokenizer(demonstrator.corpus(), size.vocabulary)
    model = kind.make_model(size, tokenizer, seed_of(config.run.seed, _MODEL) % 2**63)
    image_processor = tiny_vl.make_image_processor() if has_images else None
    if config.policy.attention is not None:
        model.set_attn_implementation(config.policy.attention)
    is_bfloat16 = config.policy.precision == "bfloat16"  # not while all weights are trained
    precision = None if is_bfloat16 else config.policy.precision
    policy = Policy(model, tokenizer, config.policy.device, image_processor, precision)
    policy.test()
    return _set_up(policy, config)
