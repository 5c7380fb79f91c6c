"""The arguments that environments are made and reset with: defaults, names, and checks."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import gymnasium as gym

from agentgyms.core.errors import BadOption

OF_CONNECTIONS: Final = ("env_id", "url", "token", "transport", "patience")
"""Arguments that say where an environment is, not which one it is."""


def defaults(env_class: type[Any]) -> dict[str, Any]:
    """Return the keyword arguments of an environment class with their defaults."""
    parameters: dict[str, inspect.Parameter] = {}
    for ancestor in reversed(inspect.getmro(env_class)):
        of_env = issubclass(ancestor, gym.Env) or hasattr(ancestor, "load_tasks")
        if of_env and "__init__" in vars(ancestor):
            parameters |= inspect.signature(vars(ancestor)["__init__"]).parameters
    return {
        name: p.default
        for name, p in parameters.items()
        if p.default is not inspect.Parameter.empty
    }


def with_defaults(env_class: type[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all arguments of an environment: those `given`, and the defaults of the others.

    Arguments that say where the environment is are left out.
    """
    everything = {**defaults(env_class), **given}
    return {name: value for name, value in everything.items() if name not in OF_CONNECTIONS}


def private_names(maker: Callable[..., Any], kwargs: Mapping[str, Any]) -> list[str]:
    """Return which arguments only the user may give, not a file that may come from anyone.

    They say where an environment connects, which files it reads and which programs it runs.
    Arguments that equal the default are harmless.

    Args:
        maker: The class of the environment, or the function that makes it.
        kwargs: The arguments that the file gives.
    """
    usual = defaults(maker) if inspect.isclass(maker) else {}
    is_private = getattr(maker, "is_private", lambda name, value: False)  # noqa: ARG005
    return sorted(
        name
        for name, value in kwargs.items()
        if name.startswith("_")
        or (name in OF_CONNECTIONS and value is not None)
        or (is_private(name, value) and not (name in usual and usual[name] == value))
    )


def check_limits(limits: Mapping[str, float], given: Mapping[str, Any]) -> None:
    """Check what arguments from somebody else may cost.

    Args:
        limits: Greatest values by name, such as a class's `client_limits`.
        given: The arguments.

    Raises:
        BadOption: One is greater.
    """
    for name, most in limits.items():
        value = given.get(name)
        if isinstance(value, int | float) and value > most:
            raise BadOption(f"{name} {value} is too large to take from others: at most {most}")


def unknown_argument(make: Callable[..., Any], given: Iterable[str]) -> str | None:
    """Return the first of the `given` names that a function or a class takes no argument of.

    Returns:
        The name; None if all are taken, or if `make` takes any name and passes it on.
    """
    # A class passes what it does not name itself on to the next `__init__` of its ancestors.
    makers = inspect.getmro(make) if inspect.isclass(make) else (make,)
    known: set[str] = set()
    for maker in makers:
        if inspect.isclass(maker) and "__init__" not in vars(maker):
            continue
        function = vars(maker)["__init__"] if inspect.isclass(maker) else maker
        parameters = inspect.signature(function).parameters.values()
        known |= {p.name for p in parameters}
        if not any(p.kind is p.VAR_KEYWORD for p in parameters):
            return next((name for name in given if name not in known), None)
    return None


def check_max_turns(max_turns: Any) -> int:
    """Return a limit of turns.

    Raises:
        BadOption: It is not a positive integer.
    """
    if not isinstance(max_turns, int) or isinstance(max_turns, bool) or max_turns < 1:
        raise BadOption(f"max_turns must be a positive integer or None, got {max_turns!r}")
    return max_turns


def check_oracle(oracle: Any) -> bool:
    """Return whether `info` has solutions.

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
