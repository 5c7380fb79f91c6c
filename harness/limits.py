"""Numbers and choices of a configuration: which ones it may have."""

from __future__ import annotations

import math
import operator
from typing import Final

from harness.config import Config
from harness.credit.arguments import one_of
from harness.errors import ConfigError
from harness.optimizing import SCHEDULES

_LEAST: Final = {
    "run.seed": 0,
    "run.steps": 0,
    "run.threads": 0,
    "run.keep_rollouts": 0,
    "policy.tiny.layers": 1,
    "policy.tiny.heads": 1,
    "policy.tiny.feed_forward": 1,
    "policy.tiny.vocabulary": 300,
    "agent.window": 0,
    "agent.max_tokens": 1,
    "rollout.tasks_per_step": 1,
    "rollout.group_size": 1,
    "rollout.max_live": 1,
    "rollout.max_batch": 1,
    "rollout.max_draws": 1,
    "rollout.enough_members": 1,
    "rollout.enough_turns": 0,
    "optimizer.warmup_steps": 0,
    "optimizer.weight_decay": 0,
    "optimizer.mini_batches": 1,
    "optimizer.mini_batch_size": 1,
    "optimizer.epochs": 1,
    "optimizer.micro_batch_tokens": 1,
    "warmstart.episodes": 0,
    "warmstart.steps": 1,
    "warmstart.batch_size": 1,
    "warmstart.weight_decay": 0,
    "policy.lora.rank": 0,
    "agent.max_context": 2,
    "optimizer.final_share": 0,
    "eval.tasks": 1,
    "eval.every": 0,
    "eval.max_turns": 1,
    "eval.temperature": 0,
    "checkpoint.every": 1,
    "checkpoint.keep": 1,
    "checkpoint.keep_best": 0,
    "log.price_per_hour": 0,
}
"""Least values; None is allowed where the configuration allows it."""

_POSITIVE: Final = (
    "agent.temperature",
    "method.reward_scale",
    "optimizer.learning_rate",
    "optimizer.max_grad_norm",
    "policy.lora.alpha",
    "policy.tiny.initial_std",
    "warmstart.learning_rate",
)

_CHOICES: Final = {
    "policy.precision": (None, "float32", "mixed", "bfloat16"),
    "rollout.backend": ("hf", "vllm", "server"),
    "rollout.old_logprobs": (None, "rollout", "recompute"),
    "optimizer.schedule": SCHEDULES,
    "checkpoint.best": ("success", "score"),
}


def check_choices(config: Config) -> None:
    """Refuse a choice that there is not, and shares out of their range.

    Raises:
        ConfigError: The message names the setting.
    """
    for name, known in _CHOICES.items():
        one_of(name, operator.attrgetter(name)(config), known)
    if config.optimizer.final_share > 1:
        raise ConfigError(
            f"optimizer.final_share must be at most 1, got {config.optimizer.final_share}"
        )
    if not 0 <= config.policy.lora.dropout < 1:
        raise ConfigError(
            f"policy.lora.dropout must be in [0, 1), got {config.policy.lora.dropout}"
        )
    cap = config.rollout.mismatch_cap
    if cap is not None and not 0 < cap < math.inf:
        raise ConfigError(f"rollout.mismatch_cap must be more than 0 and finite, got {cap}")


def check_numbers(config: Config) -> None:
    """Refuse numbers out of their range.

    Raises:
        ConfigError: The message names the setting.
    """
    for name, least in _LEAST.items():
        value = operator.attrgetter(name)(config)
        if value is not None and not least <= value < math.inf:
            raise ConfigError(f"{name} must be at least {least} and finite, got {value}")
    for name in _POSITIVE:
        value = operator.attrgetter(name)(config)
        if not 0 < value < math.inf:
            raise ConfigError(f"{name} must be greater than 0 and finite, got {value}")
    if not all(0 <= beta < 1 for beta in config.optimizer.betas):
        raise ConfigError(f"optimizer.betas must be in [0, 1), got {config.optimizer.betas}")
    if not 0 <= config.warmstart.noise < 1:
        raise ConfigError(f"warmstart.noise must be in [0, 1), got {config.warmstart.noise}")
