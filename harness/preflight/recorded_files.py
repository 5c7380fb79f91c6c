"""Files of rollouts that a run learns from: which they are, and whether they fit the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from agentgyms.core.errors import DataError
from agentgyms.data.users_files import is_litter
from harness import annotators, losses, prompts
from harness.annotators import state_values
from harness.config import Config, methods
from harness.model.tokenizer import ChatTokenizer
from harness.rollouts import rollout_files
from harness.rollouts.search import preferences
from harness.rollouts.search.preferences import Preference
from harness.types.errors import ConfigError

_NAMES: Final = {
    "env": "the environment",
    "data_version": "the data version",
    "style": "the prompt style",
    "context": "the context",
    "tokenizer": "the tokenizer",
}
"""Fields of a file's header that must be those of the run, in words."""

_PREFERENCE_ESTIMATORS: Final = ("dpo", "ipo", "kto")
"""Estimators that compare turns of one state, which a preference is."""


def described(config: Config, data_version: str) -> dict[str, str]:
    """Return the environment and prompts in the header of a run's rollouts."""
    style = prompts.load(
        config.agent.style, config.env.id, config.agent.tool_format, config.env.kwargs
    )
    return {
        "env": config.env.id,
        "data_version": data_version,
        "style": f"{style.name} {style.version}",
        "context": config.agent.context,
    }


def step_header(config: Config, data_version: str, step: int, *, tokens: bool) -> dict[str, Any]:
    """Return the header of the rollouts of a training step; `tokens` says whether they are kept."""
    method = config.method
    return {
        **described(config, data_version),
        "tokens": tokens,
        "step": step,
        "method": method.name,
        "reward": method.reward,
        "reward_scale": method.reward_scale,
    }


def files_of(paths: Sequence[str]) -> tuple[str, ...]:
    """Return recorded files, in folders those with tokens; raise `ConfigError` if unusable."""
    found: dict[str, None] = {}
    for path in paths:
        named = [path]
        if Path(path).is_dir():
            inside = sorted(
                str(file) for file in Path(path).glob("*.jsonl*") if not is_litter(file.name)
            )
            named = [file for file in inside if header(file).get("tokens")]
        if not named or not (preferences.is_file_of(named[0]) or header(named[0]).get("tokens")):
            raise ConfigError(
                f"rollout.recorded: {path} holds no rollouts with tokens: give a file or folder of "
                "a run with run.keep_rollouts, such as runs/NAME/rollouts, or one of preferences "
                "whose first line is whole"
            )
        found.update(dict.fromkeys(named))
    return tuple(found)


def header(path: str) -> dict[str, Any]:
    """Return the header of a file of rollouts, empty if it has none."""
    try:
        return rollout_files.header(path)
    except DataError as e:
        raise ConfigError(f"rollout.recorded: {e}") from None


def check_method(config: Config) -> None:
    """Raise `ConfigError` for a method or setting that needs live play, if the run reads files."""
    given, row = config.rollout, methods.get(config.method.name)
    if given.is_live:
        return
    if losses.is_on_policy(row.loss):
        raise ConfigError(
            f"rollout.recorded has rollouts of other policies, and method {row.name} is on-policy: "
            f"its loss {row.loss!r} needs those of the policy before each update; use one with the "
            "loss 'nll', such as dpo"
        )
    pairs = any(map(preferences.is_file_of, given.recorded))
    if pairs and row.estimator not in _PREFERENCE_ESTIMATORS:
        raise ConfigError(
            f"rollout.recorded has preferences, from which {row.name} does not learn: it would "
            f"imitate both answers; use {', '.join(_PREFERENCE_ESTIMATORS)}"
        )
    for name, settings in config.method.annotators.items():
        if annotators.needs_oracle(name, settings) or state_values.wanted({name: settings}):
            raise ConfigError(
                f"rollout.recorded has no live environments, which annotator {name!r} needs"
            )
    for other, live in (
        ("rollout.dynamic_sampling", given.dynamic_sampling),
        ("rollout.branch.at", given.branch.at),
        ("rollout.curriculum.by", given.curriculum.by),
    ):
        if live:
            raise ConfigError(f"rollout.recorded plays nothing, and {other} plays: leave one out")


def read_preferences(path: str) -> list[Preference]:
    """Return a file's preferences; raise `ConfigError` if missing, damaged or contradictory."""
    try:
        found = preferences.read(path)
    except DataError as e:
        raise ConfigError(f"rollout.recorded: {e}") from None
    for i, one in enumerate(found, start=1):
        if one.value_chosen <= one.value_rejected or one.chosen == one.rejected:
            raise ConfigError(
                f"rollout.recorded: preference {i} of {path[-80:]} chooses an answer of value "
                f"{one.value_chosen:g} over one of {one.value_rejected:g}: leave it out"
            )
    return found


def check_files(config: Config, data_version: str) -> None:
    """Refuse recorded rollouts of another environment, data version, prompt style or context."""
    _check(config.rollout.recorded, described(config, data_version))


def check_tokenizer(config: Config, tokenizer: ChatTokenizer) -> None:
    """Raise `ConfigError`, which names the file, for recorded tokens of another tokenizer."""
    _check(config.rollout.recorded, {"tokenizer": tokenizer.digest})


def _check(files: Sequence[str], wanted: Mapping[str, str]) -> None:
    for file in files:
        if preferences.is_file_of(file):
            read_preferences(file)
            continue
        given = header(file)
        for key, value in wanted.items():
            if given.get(key) != value:
                raise ConfigError(
                    f"rollout.recorded: {_NAMES[key]} of {file[-80:]} is "
                    f"{given.get(key, 'not told')!s:.60}, and that of the run {value:.60}: give "
                    "rollouts of runs like this one"
                )
