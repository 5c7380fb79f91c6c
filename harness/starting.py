"""Starts a run: a fresh one with its warm start, or one that goes on from its last checkpoint."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import numpy as np
import torch
from tqdm import tqdm

from harness import checkpoints, prompts, tiny, tiny_vl
from harness.annotators import semantic
from harness.checks import TINY_MODELS, blind, check
from harness.collect import collect
from harness.config import Config
from harness.errors import CheckpointError, ConfigError, TrainingError
from harness.playing import make_pool, make_silent_agent, tasks_of
from harness.policy import Policy
from harness.runfolder import RunFolder
from harness.sampling import TaskSampler, seed_of
from harness.settings import credit_settings, needs_reference, resolve
from harness.trainer import Trainer
from harness.warmstart import Demonstrator, fine_tune

_DEMONSTRATIONS, _MODEL, _FINE_TUNING = 11, 12, 13


def start(config: Config) -> Trainer:
    """Return the trainer of a new run, its policy warmed up.

    Raises:
        ConfigError: A setting is wrong, or the run exists.
    """
    config = resolve(config)
    check(config)
    scored = semantic.resolve(credit_settings(config), config.policy.device)
    folder = RunFolder.create(config)
    _set_threads(config)
    _seed_global_generators(config.run.seed)
    policy = _first_policy(config)
    reference = None
    if needs_reference(config):
        policy.save(folder.path / "reference")
        reference = policy.frozen_copy()
    return Trainer(config, folder, policy, reference, scored)


def resume(path: str | Path) -> Trainer:
    """Return the trainer of a run, as its last complete checkpoint left it.

    Raises:
        CheckpointError: There is no run or no checkpoint, or its files are damaged.
    """
    folder = RunFolder(Path(path))
    try:
        config = resolve(folder.config())  # runs of older versions leave settings open
    except ConfigError as e:
        raise CheckpointError(f"the run in {path} cannot go on: {e}") from e
    found = checkpoints.find_all(folder.path)
    if not found:
        raise CheckpointError(f"{path} has no complete checkpoint yet: delete it and start again")
    _set_threads(config)
    reference = None
    try:
        policy = _load(str(found[-1].folder), config)
        if needs_reference(config):
            reference = _load(str(folder.path / "reference"), config).frozen_copy()
        scored = semantic.resolve(credit_settings(config), config.policy.device)
    except ConfigError as e:
        raise CheckpointError(f"the run in {path} cannot go on: {e}") from e
    return Trainer(config, folder, policy, reference, scored, found[-1])


def _set_threads(config: Config) -> None:
    if config.run.threads:
        torch.set_num_threads(config.run.threads)


def _seed_global_generators(seed: int) -> None:
    """Fix what others may draw from, such as a model's dropout; this package never does."""
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 (others may still draw from it)
    torch.manual_seed(seed)


def _load(path: str, config: Config) -> Policy:
    policy = Policy.load(path, config.policy.device)
    style = prompts.load(config.agent.style, config.env.id)
    if style.shows_image and policy.vision is None:
        raise blind(config.policy.model, style.name)
    if config.agent.context == "transcript":
        policy.chats.check()
    if config.policy.gradient_checkpointing:
        model = policy.model  # transformers 5 renamed it
        enable = getattr(model, "activation_checkpointing_enable", None)
        (enable or model.gradient_checkpointing_enable)({"use_reentrant": False})
    return policy


def _first_policy(config: Config) -> Policy:
    """Return the model before reinforcement learning."""
    if not config.warmstart.episodes:
        return _load(config.policy.model, config)
    demonstrator = _demonstrate(config)
    if config.policy.model in TINY_MODELS:
        policy = _tiny_policy(config, demonstrator)
    else:
        policy = _load(config.policy.model, config)
    loss = fine_tune(
        policy,
        demonstrator.demonstrations,
        config.warmstart,
        seed=seed_of(config.run.seed, _FINE_TUNING),
        micro_batch_tokens=config.optimizer.micro_batch_tokens,
    )
    tqdm.write(f"warm start: {len(demonstrator.demonstrations)} expert turns, last loss {loss:.3f}")
    return policy


def _tiny_policy(config: Config, demonstrator: Demonstrator) -> Policy:
    """Return a tiny model with random weights, its tokenizer made from the demonstrations."""
    size, sees = config.policy.tiny, config.policy.model == "tiny-vl"
    kind = tiny_vl if sees else tiny
    tokenizer = kind.make_tokenizer(demonstrator.corpus(), size.vocabulary)
    model = kind.make_model(size, tokenizer, seed_of(config.run.seed, _MODEL) % 2**63)
    image_processor = tiny_vl.make_image_processor() if sees else None
    return Policy(model, tokenizer, config.policy.device, image_processor)


def _demonstrate(config: Config) -> Demonstrator:
    """Let the expert play."""
    warm = config.warmstart
    demonstrator = Demonstrator(make_silent_agent(config), warm.expert, warm.noise)
    pool = make_pool(config, config.env.train_split, 1, oracle=True)
    draws = TaskSampler(tasks_of(pool), seed_of(config.run.seed, _DEMONSTRATIONS)).draw(
        0, warm.episodes
    )
    with tqdm(total=len(draws), desc="expert episodes", unit="episode", mininterval=1.0) as bar:
        seed = seed_of(config.run.seed, _DEMONSTRATIONS)
        rollouts = asyncio.run(
            collect(pool, draws, demonstrator, seed=seed, on_finish=lambda _: bar.update())
        )
    pool.close()
    lost = [rollout.error for rollout in rollouts if rollout.error]
    if len(lost) == len(rollouts):
        raise TrainingError(f"every expert episode was lost: {lost[0]}")
    return demonstrator
