"""Refuses a configuration that would fail later: after the warm start, or after an hour."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import gymnasium as gym
import torch

from harness import adapters, annotators, credit, methods, prompts, tracking
from harness.agent import CONTEXTS
from harness.annotators import semantic
from harness.collect import EnvPool
from harness.config import Config
from harness.credit import TurnTable
from harness.credit.arguments import one_of
from harness.credit.registry import layers
from harness.credit.table import REWARDS
from harness.errors import ConfigError
from harness.generation import check_generation
from harness.limits import check_choices, check_numbers
from harness.playing import make_eval_pool, make_pool, tasks_of
from harness.prompts import PromptStyle
from harness.settings import annotator_settings, credit_settings, loss_settings
from harness.vision import MODEL_TYPES

TINY_MODELS: Final = ("tiny", "tiny-vl")
"""Values of `policy.model` that make a model on the spot; the second one sees."""


def check(config: Config) -> None:
    """Refuse what cannot work: names, numbers, hyperparameters, the environment and its splits.

    Raises:
        ConfigError: A setting cannot be used; the message names it.
        AgentGymsError: The environment cannot be made, for lack of data or of its server.
    """
    style = prompts.load(config.agent.style, config.env.id)
    check_numbers(config)
    check_choices(config)
    tracking.check(config)
    _check_model(config)
    _check_sight(config, style)
    check_generation(config, shows_image=style.shows_image)
    _check_method(config)
    _check_environment(config, style)


def _check_model(config: Config) -> None:
    size = config.policy.tiny
    if size.hidden % (2 * size.heads):
        raise ConfigError(
            f"policy.tiny.hidden must be a multiple of twice policy.tiny.heads ({size.heads}), "
            f"got {size.hidden}"
        )
    width = size.hidden // size.heads
    if config.policy.model == "tiny-vl" and (width < 8 or width % 4):
        raise ConfigError(
            f"policy.tiny.hidden must be 8, 12, 16... times policy.tiny.heads ({size.heads}) in a "
            f"tiny model that sees, got {size.hidden}"
        )
    if config.policy.model in TINY_MODELS and not config.warmstart.episodes:
        raise ConfigError("a tiny model needs warmstart.episodes: its tokenizer is made from them")
    if config.policy.lora.rank:
        adapters.check()
    elif config.policy.precision == "bfloat16":
        raise ConfigError(
            "policy.precision 'bfloat16' is for adapters (policy.lora.rank): weights of 8 binary "
            "digits lose updates smaller than 1/256 of them; take 'mixed' to train all weights"
        )
    try:
        torch.device(config.policy.device or "cpu")
    except RuntimeError as e:
        raise ConfigError(f"policy.device {config.policy.device!r} cannot be used: {e}") from None


def _check_sight(config: Config, style: PromptStyle) -> None:
    """Refuse a model that reads only for a style that shows an image.

    A text style on an environment with images is fine: its model goes by the text. What a model on
    the hub can do is known once it is loaded.
    """
    name = config.policy.model
    if not style.shows_image or name == "tiny-vl":
        return
    kind = "qwen2" if name == "tiny" else _type_in_folder(Path(name))
    if kind and kind not in MODEL_TYPES:
        raise blind(name, style.name)


def _type_in_folder(folder: Path) -> str:
    """Return the type of the model in a folder, "" if there is none that can be read."""
    try:
        description = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        return str(description["model_type"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def blind(model: str, style: str) -> ConfigError:
    """Return the error of a model that cannot see what a style shows."""
    return ConfigError(
        f"policy.model {model!r} reads only, but the prompt style {style} shows an image: use "
        f"'tiny-vl' or a model of type {' or '.join(MODEL_TYPES)}, or a style without an image"
    )


def _check_method(config: Config) -> None:
    """Compute the credit of two rollouts and the loss of a token: a value of a wrong kind fails."""
    if config.method.reward not in REWARDS:
        raise ConfigError(
            f"unknown method.reward {config.method.reward!r}: expected one of {', '.join(REWARDS)}"
        )
    _check_rows(config)
    method = methods.get(config.method.name)
    settings, _ = _without_models(credit_settings(config)), loss_settings(config)
    _check_tokens(config, settings)
    columns = {
        name: [0.5] * 4
        for other in annotator_settings(config)
        for name in annotators.columns(other)
    }
    table = TurnTable.from_columns(rollout=[0, 0, 1, 1], reward=[0.0, 0.0, 0.0, 1.0], **columns)
    try:
        credit.get(method.estimator)(table, **settings)
    except ConfigError:
        raise
    except (TypeError, ValueError) as e:
        raise ConfigError(f"method {method.name} cannot use its settings: {e}") from e


def _without_models(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return an estimator's settings with a scorer that needs no model in the place of others.

    Those are opened when the run starts, before anything else is done.
    """
    plain = dict(settings)
    for key in ("scorer", "match"):
        kind = str(plain.get(key)).partition(":")[0]
        if kind in semantic.DEFAULT_MODELS:
            plain[key] = "lexical"
    if isinstance(plain.get("base"), Mapping):
        plain["base"] = _without_models(plain["base"])
    return plain


def _check_rows(config: Config) -> None:
    """Refuse unknown contexts and rows, and early ends that no group can reach."""
    one_of("agent.context", config.agent.context, CONTEXTS)
    one_of("method.rows", config.method.rows, (None, "turn", "token"))
    enough, size = config.rollout.enough_members, config.rollout.group_size
    if enough is not None and enough > size:
        raise ConfigError(
            f"rollout.enough_members is {enough}, but rollout.group_size only {size}: no group "
            "could end early"
        )
    share = config.rollout.enough_share
    if share is not None and not 0 < share <= 1:
        raise ConfigError(f"rollout.enough_share must be in (0, 1], got {share}")
    limit = config.optimizer.max_kl
    if limit is not None and not 0 < limit < math.inf:
        raise ConfigError(f"optimizer.max_kl must be greater than 0 and finite, got {limit}")


_OF_STATES: Final = ("ecpo", "gigpo", "hgpo", "salt", "scpo")
"""Estimators that compare turns in equal states: a turn's tokens would count as visits."""


def _check_tokens(config: Config, settings: Mapping[str, Any]) -> None:
    """Refuse rows of tokens for estimators that compare states."""
    row = methods.get(config.method.name)
    if (config.method.rows or row.rows) != "token":
        return
    for name, _ in layers(row.estimator, settings):
        if name in _OF_STATES:
            raise ConfigError(
                f"method.rows is 'token', but the estimator {name!r} compares turns in equal "
                "states: use 'turn'"
            )


def _check_environment(config: Config, style: PromptStyle) -> None:
    pools = [make_pool(config, config.env.train_split, 1)]
    splits = (config.eval.split, *config.eval.final_splits)
    pools += [make_eval_pool(config, split) for split in dict.fromkeys(splits)]
    for pool in pools:
        try:
            tasks_of(pool)
            if style.shows_image and "image" not in _parts_of(pool):
                raise ConfigError(
                    f"the prompt style {style.name} shows an image, but {config.env.id} observes "
                    "text alone: use another agent.style or env.id"
                )
        except (gym.error.Error, TypeError, ImportError) as e:
            raise ConfigError(f"env.id {config.env.id!r} cannot be made: {e}") from e
        finally:
            pool.close()


def _parts_of(pool: EnvPool) -> Iterable[str]:
    """Return the names of the parts that an environment's observations have; none for text."""
    group = pool.take()
    space = group.envs[0].observation_space
    pool.give_back(group)
    return tuple(space) if isinstance(space, gym.spaces.Dict) else ()
