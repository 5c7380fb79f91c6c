"""Files of rollouts that a run learns from: which they are, and whether they fit the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from agentgyms.core.errors import DataError
from harness import annotators, losses, prompts
from harness.annotators import state_values
from harness.config import Config, methods
from harness.model.tokenizer import ChatTokenizer
from harness.rollouts import rollout_files
from harness.types.errors import ConfigError

_NAMES: Final = {
    "env": "the environment",
    "data_version": "the data version",
    "style": "the prompt style",
    "context": "the context",
    "tokenizer": "the tokenizer",
}
"""Fields of a file's header that must be those of the run, in words."""


def described(config: Config, data_version: str) -> dict[str, str]:
    """Return what the header of a run's rollouts says of environment and prompts."""
    style = prompts.load(config.agent.style, config.env.id, config.agent.tool_format)
    return {
        "env": config.env.id,
        "data_version": data_version,
        "style": f"{style.name} {style.version}",
        "context": config.agent.context,
    }


def files_of(paths: Sequence[str]) -> tuple[str, ...]:
    """Return the files that `rollout.recorded` names; of a folder those with tokens, by name.

    Raises:
        ConfigError: A file or a folder is missing, damaged, or has no rollouts with tokens.
    """
    found: dict[str, None] = {}
    for path in paths:
        named = [path]
        if Path(path).is_dir():
            inside = sorted(map(str, Path(path).glob("*.jsonl*")))
            named = [file for file in inside if header(file).get("tokens")]
        if not named or not header(named[0]).get("tokens"):
            raise ConfigError(
                f"rollout.recorded: {path} holds no rollouts with tokens: give a file or folder of "
                "a run with run.keep_rollouts, such as runs/NAME/rollouts"
            )
        found.update(dict.fromkeys(named))
    return tuple(found)


def header(path: str) -> dict[str, Any]:
    """Return the header of a file of rollouts, empty if it has none.

    Raises:
        ConfigError: There is no such file, or it is damaged.
    """
    try:
        return rollout_files.header(path)
    except DataError as e:
        raise ConfigError(f"rollout.recorded: {e}") from None


def check_method(config: Config) -> None:
    """Refuse methods and settings that need live play, where a run has recorded rollouts.

    Raises:
        ConfigError: The message names what needs it.
    """
    if not config.rollout.recorded:
        return
    row = methods.get(config.method.name)
    if losses.is_on_policy(row.loss):
        raise ConfigError(
            f"rollout.recorded has rollouts of other policies, and method {row.name} is on-policy: "
            f"its loss {row.loss!r} needs those of the policy before each update; use one with the "
            "loss 'nll', such as rft or dpo"
        )
    for name, given in config.method.annotators.items():
        if annotators.needs_oracle(name, given) or state_values.wanted({name: given}):
            raise ConfigError(
                f"rollout.recorded has no live environments, which the annotator {name!r} needs"
            )
    for key, live in (
        ("rollout.dynamic_sampling", config.rollout.dynamic_sampling),
        ("rollout.branch.at", config.rollout.branch.at),
    ):
        if live:
            raise ConfigError(f"rollout.recorded plays nothing, and {key} plays: leave one out")


def check_files(config: Config, data_version: str) -> None:
    """Refuse recorded rollouts of another environment, data version, prompt style or context.

    Raises:
        ConfigError: The message names the file and the difference.
    """
    _check(config.rollout.recorded, described(config, data_version))


def check_tokenizer(config: Config, tokenizer: ChatTokenizer) -> None:
    """Refuse recorded rollouts with tokens of another tokenizer.

    Raises:
        ConfigError: The message names the file.
    """
    if config.rollout.recorded:
        _check(config.rollout.recorded, {"tokenizer": tokenizer.digest})


def _check(files: Sequence[str], wanted: Mapping[str, str]) -> None:
    for file in files:
        given = header(file)
        for key, value in wanted.items():
            if given.get(key) != value:
                raise ConfigError(
                    f"rollout.recorded: {_NAMES[key]} of {file[-80:]} is "
                    f"{given.get(key, 'not told')!s:.60}, and that of the run {value:.60}: give "
                    "rollouts of runs like this one"
                )
