"""What environments are made and reset with: defaults, and checks that say what is wrong."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from agentgyms.errors import BadOption

if TYPE_CHECKING:
    from agentgyms.core import TextEnv

OF_CONNECTIONS: Final = ("env_id", "url", "token", "transport", "patience")
"""Arguments that say where an environment is, not which one it is."""


def defaults(env_class: type[Any]) -> dict[str, Any]:
    """Return the keyword arguments of an environment class with their defaults."""
    parameters: dict[str, inspect.Parameter] = {}
    for ancestor in reversed(inspect.getmro(env_class)):
        if "__init__" in vars(ancestor) and hasattr(ancestor, "load_tasks"):
            parameters |= inspect.signature(vars(ancestor)["__init__"]).parameters
    return {
        name: p.default
        for name, p in parameters.items()
        if p.default is not inspect.Parameter.empty
    }


def in_force(env: TextEnv) -> dict[str, Any]:
    """Return all arguments of an environment: those it was made with, and the others' defaults."""
    everything = defaults(type(env)) | env.arguments
    return {name: value for name, value in everything.items() if name not in OF_CONNECTIONS}


def check_max_turns(max_turns: Any) -> int:
    """Return a limit of turns.

    Raises:
        BadOption: It is not a positive integer.
    """
    if not isinstance(max_turns, int) or isinstance(max_turns, bool) or max_turns < 1:
        raise BadOption(f"max_turns must be a positive integer or None, got {max_turns!r}")
    return max_turns


def check_oracle(oracle: Any) -> bool:
    """Return whether solutions are told.

    Raises:
        BadOption: It is neither True nor False.
    """
    if not isinstance(oracle, bool):
        raise BadOption(f"oracle must be True or False, got {oracle!r}")
    return oracle


def check_options(options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return reset options as a dictionary.

    Raises:
        BadOption: They are no mapping, or hold a key other than `task_id`.
    """
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise BadOption(f"options must be a dict or None, got {type(options).__name__}")
    unknown = sorted(set(options) - {"task_id"}, key=str)
    if unknown:
        raise BadOption(f"unknown reset option {unknown[0]!r}: expected only 'task_id'")
    return {key: value for key, value in options.items() if value is not None}
