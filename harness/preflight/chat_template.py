"""The chat template of a run's model, if that is on this machine: its arguments and its date."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.config import TINY_MODELS, Config
from harness.model.chat_templates import clock, rendering, trusted
from harness.model.loading import tokenizer_of
from harness.preflight.model_shapes import config_file_of
from harness.types.errors import ConfigError


def tokenizer_here(model: str, setting: str = "policy.model") -> Any:
    """Return the tokenizer of a model on this machine, None if it is tiny or not here."""
    if model in TINY_MODELS or config_file_of(model) is None:
        return None
    return tokenizer_of(model, setting)


def check(config: Config) -> None:
    """Raise `ConfigError` for an argument that the template does not read."""
    given, model = config.policy.chat_template_kwargs, config.policy.model
    if not given:
        return
    if model in TINY_MODELS:
        template = trusted.TINY_VL if model == "tiny-vl" else trusted.TINY
        rendering.check_arguments(template, given, ())
        return
    tokenizer = tokenizer_here(model)
    if tokenizer is not None:
        rendering.check_arguments(tokenizer.chat_template, given, tokenizer.special_tokens_map)


def arguments(config: Config) -> Mapping[str, Any]:
    """Return the arguments of a run's template, with today's date if the template reads one.

    The run folder keeps them, so that a resumed or evaluated run has the same prompts. Raises
    `ConfigError` if the template must not be rendered.
    """
    given = config.policy.chat_template_kwargs
    try:
        tokenizer = None if clock.NAME in given else tokenizer_here(config.policy.model)
    except ConfigError:  # a dry run says that the model is damaged, and so does the start
        return given
    if tokenizer is None or not tokenizer.chat_template:
        return given
    rendering.check(tokenizer)
    is_dated = rendering.reads_clock(tokenizer.chat_template)
    return {**given, clock.NAME: clock.DATE} if is_dated else given
