"""Starts a run: a fresh one with its warm start, or one that goes on from its last checkpoint."""

from __future__ import annotations

import asyncio
import random
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from harness import adapters, checkpoints, durable, prompts, tiny, tiny_vl
from harness.annotators import semantic
from harness.checks import TINY_MODELS, blind, check
from harness.collect import collect
from harness.config import Config
from harness.errors import CheckpointError, ConfigError, TrainingError
from harness.playing import make_pool, make_silent_agent, tasks_of
from harness.policy import Policy
from harness.ranks import ALONE, Ranks
from harness.runfolder import RunFolder
from harness.sampling import TaskSampler, seed_of
from harness.settings import credit_settings, needs_reference, resolve
from harness.trainer import Trainer
from harness.warmstart import Demonstrator, fine_tune

_DEMONSTRATIONS, _MODEL, _FINE_TUNING, _ADAPTERS = 11, 12, 13, 14


def start(config: Config, ranks: Ranks = ALONE) -> Trainer:
    """Return the trainer of a new run, its policy warmed up.

    Args:
        config: The run.
        ranks: This process among those that train; all of them see the run's folder.

    Raises:
        ConfigError: A setting is wrong, or the run exists.
    """
    config = resolve(config)
    ranks.together(lambda: check(config))
    scored = _scorers(config, ranks)
    folder = ranks.of_first(lambda: RunFolder.create(config))
    return _begin(config, folder, scored, ranks)


def _scorers(config: Config, ranks: Ranks) -> dict[str, Any]:
    device = config.policy.device if ranks.size == 1 else str(ranks.device)
    return ranks.together(lambda: semantic.resolve(credit_settings(config), device))


def _begin(config: Config, folder: RunFolder, scored: dict[str, Any], ranks: Ranks) -> Trainer:
    """Return the trainer of a run at its very beginning."""
    _set_threads(config)
    _seed_global_generators(config.run.seed + ranks.rank)
    policy = _first_of_all(config, folder.path, ranks)
    reference = None
    if needs_reference(config):
        if ranks.is_first:
            policy.save(folder.path / "reference")
            durable.flush_all(folder.path / "reference")
        reference = policy.frozen_copy()
    return Trainer(config, folder, policy, reference, scored, ranks=ranks)


def _first_of_all(config: Config, folder: Path, ranks: Ranks) -> Policy:
    """Return the model before reinforcement learning, the same in all processes.

    The first one warms it up, alone; the others read what it wrote.
    """
    if ranks.size == 1:
        return _first_policy(config, folder)
    waiting = _before_sharding(config, ranks)
    if not config.warmstart.episodes:
        return ranks.together(lambda: _first_policy(waiting, folder))
    first = folder / "first"
    ranks.of_first(lambda: _first_policy(config, folder).save(first))
    policy = ranks.together(lambda: _load(str(first), waiting))
    if ranks.is_first:
        shutil.rmtree(first)
    return policy


def _before_sharding(config: Config, ranks: Ranks) -> Config:
    """Return the settings of models that processes are to share.

    They are loaded into main memory, whole, since no GPU need hold one; and they compute as they
    would on the GPU.
    """
    if ranks.size == 1:
        return config
    usual = "mixed" if ranks.device.type == "cuda" else "float32"
    own = replace(config.policy, device="cpu", precision=config.policy.precision or usual)
    return replace(config, policy=own)


def resume(path: str | Path, ranks: Ranks = ALONE) -> Trainer:
    """Return the trainer of a run, as its last whole checkpoint left it.

    A run that ended before its first checkpoint begins again. Any number of processes goes on with
    the checkpoint of any other number.

    Raises:
        CheckpointError: There is no run, its checkpoints are gone, or files are damaged.
    """
    folder = RunFolder(Path(path))
    try:
        config = resolve(folder.config())  # runs of older versions leave settings open
    except ConfigError as e:
        raise CheckpointError(f"the run in {path} cannot go on: {e}") from e
    kept = config.checkpoint
    found = ranks.of_first(
        lambda: checkpoints.take_up(
            folder.path, keep=kept.keep, keep_best=kept.keep_best, best=kept.best
        )
    )
    if found is None and folder.has_trained():
        raise CheckpointError(f"{path} has no checkpoint any more: delete it and start again")
    if found is None:
        return _begin(config, folder, _scorers(config, ranks), ranks)
    _set_threads(config)
    _seed_global_generators(config.run.seed + ranks.rank)  # what more processes than saved draw
    waiting = _before_sharding(config, ranks)
    reference = None
    try:
        policy = _load(str(found.folder), waiting)
        if needs_reference(config):
            reference = _load_reference(folder.path / "reference", policy, waiting)
        scored = _scorers(config, ranks)
    except ConfigError as e:
        raise CheckpointError(f"the run in {path} cannot go on: {e}") from e
    return Trainer(config, folder, policy, reference, scored, found, ranks)


def _set_threads(config: Config) -> None:
    if config.run.threads:
        torch.set_num_threads(config.run.threads)


def _seed_global_generators(seed: int) -> None:
    """Fix what others may draw from, such as a model's dropout; this package never does."""
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 (others may still draw from it)
    torch.manual_seed(seed)


def _load(path: str, config: Config) -> Policy:
    wanted = config.policy
    policy = Policy.load(
        path, wanted.device, precision=wanted.precision, attention=wanted.attention
    )
    style = prompts.load(config.agent.style, config.env.id)
    if style.shows_image and policy.vision is None:
        raise blind(config.policy.model, style.name)
    if config.agent.context == "transcript":
        policy.chats.check()
    return _set_up(policy, config)


def _set_up(policy: Policy, config: Config) -> Policy:
    """Return the policy, which computes as the run asks for."""
    if config.policy.gradient_checkpointing:
        model = policy.model  # transformers 5 renamed it
        enable = getattr(model, "activation_checkpointing_enable", None)
        (enable or model.gradient_checkpointing_enable)({"use_reentrant": False})
    policy.set_padding_free(config.optimizer.padding_free)
    return policy


def _load_reference(folder: Path, policy: Policy, config: Config) -> Policy:
    """Return the policy before training; it shares what adapters leave as it is."""
    if not policy.is_adapted:
        return _load(str(folder), config).frozen_copy()
    reference = policy.frozen_copy()
    adapters.read(reference.model, folder)
    return reference


def _first_policy(config: Config, folder: Path) -> Policy:
    """Return the model before reinforcement learning.

    Adapters are there from the beginning; a tiny model, of random weights, is warmed up first, and
    kept as their base.
    """
    if not config.warmstart.episodes:
        return _adapted(_load(config.policy.model, config), config)
    demonstrator = _demonstrate(config)
    if config.policy.model not in TINY_MODELS:
        policy = _adapted(_load(config.policy.model, config), config)
        _warm_up(policy, demonstrator, config)
        return policy
    policy = _tiny_policy(config, demonstrator)
    _warm_up(policy, demonstrator, config)
    if not config.policy.lora.rank:
        return policy
    base = folder / adapters.BASE_FOLDER
    policy.save(base)
    durable.flush_all(base)
    return _adapted(_load(str(base), config), config, str(base.resolve()))


def _adapted(policy: Policy, config: Config, base: str | None = None) -> Policy:
    """Return the policy with adapters, if the run is to train such.

    Raises:
        ConfigError: It has others already.
    """
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
        where = str(Path(name).resolve()) if Path(name).is_dir() else name
        policy.adapt(wanted, where, seed_of(config.run.seed, _ADAPTERS))
    return policy


def _warm_up(policy: Policy, demonstrator: Demonstrator, config: Config) -> None:
    loss = fine_tune(
        policy,
        demonstrator.demonstrations,
        config.warmstart,
        seed=seed_of(config.run.seed, _FINE_TUNING),
        micro_batch_tokens=config.optimizer.micro_batch_tokens,
    )
    tqdm.write(f"warm start: {len(demonstrator.demonstrations)} expert turns, last loss {loss:.3f}")


def _tiny_policy(config: Config, demonstrator: Demonstrator) -> Policy:
    """Return a tiny model with random weights, its tokenizer made from the demonstrations."""
    size, sees = config.policy.tiny, config.policy.model == "tiny-vl"
    kind = tiny_vl if sees else tiny
    tokenizer = kind.make_tokenizer(demonstrator.corpus(), size.vocabulary)
    model = kind.make_model(size, tokenizer, seed_of(config.run.seed, _MODEL) % 2**63)
    image_processor = tiny_vl.make_image_processor() if sees else None
    if config.policy.attention is not None:
        model.set_attn_implementation(config.policy.attention)
    whole = config.policy.precision != "bfloat16"  # it learns all its weights first
    precision = config.policy.precision if whole else None
    policy = Policy(model, tokenizer, config.policy.device, image_processor, precision)
    return _set_up(policy, config)


def _demonstrate(config: Config) -> Demonstrator:
    """Let the expert play."""
    warm = config.warmstart
    demonstrator = Demonstrator(make_silent_agent(config), warm.expert, warm.noise)
    pool = make_pool(config, config.env.train_split, 1, oracle=True)
    draws = TaskSampler(tasks_of(pool), seed_of(config.run.seed, _DEMONSTRATIONS)).draw(
        0, warm.episodes
    )
    with tqdm(total=len(draws), desc="expert episodes", unit="episode", disable=None) as bar:
        seed = seed_of(config.run.seed, _DEMONSTRATIONS)
        rollouts = asyncio.run(
            collect(pool, draws, demonstrator, seed=seed, on_finish=lambda _: bar.update())
        )
    pool.close()
    lost = [rollout.error for rollout in rollouts if rollout.error]
    if len(lost) == len(rollouts):
        raise TrainingError(f"every expert episode was lost: {lost[0]}")
    return demonstrator
