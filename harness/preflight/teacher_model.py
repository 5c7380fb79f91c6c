"""The teacher of a run that distills: refused where it cannot score the policy's tokens."""

from __future__ import annotations

from harness import prompts
from harness.annotators.distillation import MISSING, NAME, SELF, TeacherSettings
from harness.annotators.scoring_server import ScoringServer
from harness.annotators.text_reader import check_tokens
from harness.config import Config, replace
from harness.model import hub
from harness.model.tokenizer import ChatTokenizer
from harness.preflight.chat_template import tokenizer_here
from harness.preflight.defaults import annotator_settings, credit_settings
from harness.preflight.model_shapes import (
    Shape,
    config_file_of,
    max_sequence_length,
    shape_of,
)
from harness.types.errors import ConfigError


def settings_of_teacher(config: Config) -> TeacherSettings | None:
    """Return the settings of a run's teacher, None for a run without one."""
    given = annotator_settings(config).get(NAME)
    return None if given is None else TeacherSettings(**given)


def shape_of_teacher(config: Config) -> Shape | None:
    """Return the shape of a teacher that is loaded beside the policy, None if it is unknown."""
    settings = settings_of_teacher(config)
    if settings is None or settings.loaded is None:
        return None
    try:
        return shape_of(replace(config.policy, model=settings.loaded))
    except ConfigError:
        return None


def check(config: Config) -> None:
    """Raise `ConfigError` if the teacher is missing, or cannot score the policy's tokens.

    The tokenizer of a tiny policy is not made yet: the annotator compares it. Raises
    `ModelUnavailable` if the teacher's server does not answer.
    """
    settings = settings_of_teacher(config)
    if settings is None:
        return
    if settings.model is None:
        raise ConfigError(f"method {config.method.name}: {MISSING}")
    if settings.model in SELF:
        _check_self(config, settings)
    elif settings.served is not None:
        _check_server(config, ScoringServer(settings.served))
    else:
        _check_loaded(config, str(settings.loaded))


def _check_self(config: Config, settings: TeacherSettings) -> None:
    """Refuse a policy that would learn from its outputs."""
    is_penalty = settings.model == "initial" and credit_settings(config).get("base") is not None
    if not settings.hint and not is_penalty:
        raise ConfigError(
            f"the teacher {settings.model!r} sees what the policy sees and has nothing to teach: "
            "set method.annotators.teacher.hint"
        )


def _check_server(config: Config, server: ScoringServer) -> None:
    if config.agent.temperature != 1:
        raise ConfigError(
            "the log-probabilities of a server are those of temperature 1: set agent.temperature "
            f"to 1, it is {config.agent.temperature:g}, or give the teacher's folder"
        )
    style = prompts.load(
        config.agent.style, config.env.id, config.agent.tool_format, config.env.kwargs
    )
    if style.shows_image:
        raise ConfigError(
            f"the prompt style {style.name} shows an image, and a teacher on a server takes only "
            "tokens: give the teacher's folder, or another agent.style"
        )
    own = tokenizer_here(config.policy.model)
    server.check(None if own is None else ChatTokenizer(own, None))
    _check_length(config, server.max_length)


def _check_loaded(config: Config, name: str) -> None:
    hub.check_name(name, "teacher.model")
    if config_file_of(name) is None:  # the dry run says that it is missing, and so does the start
        return
    own = tokenizer_here(config.policy.model)
    if own is not None:
        check_tokens(f"teacher.model {name!r}", tokenizer_here(name, "teacher.model"), own)
    shape = shape_of_teacher(config)
    _check_length(config, shape.max_length if shape else None)


def _check_length(config: Config, longest: int | None) -> None:
    try:
        wanted = max_sequence_length(config, shape_of(config.policy))
    except ConfigError:  # of a model that is not here
        return
    if longest is not None and wanted > longest:
        raise ConfigError(
            f"sequences have up to {wanted} tokens, and the teacher reads {longest}: set "
            "agent.max_context to that"
        )
